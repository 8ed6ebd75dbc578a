// node run.cjs FOLDER < inputs.json
//
// Runs a graph model of TF.js with its plain JavaScript backend. Inputs are {name: {shape, dtype, data}} with data in base64;
// prints a list of results in that form, in the order of the signature.

const fs = require("node:fs");
const path = require("node:path");
console.warn = () => {}; // the warning that a faster backend exists
const tf = require("@tensorflow/tfjs");

function handler(folder) {
  const model = JSON.parse(fs.readFileSync(path.join(folder, "model.json")));
  const { paths, weights } = model.weightsManifest.reduce(
    (all, group) => ({ paths: [...all.paths, ...group.paths], weights: [...all.weights, ...group.weights] }),
    { paths: [], weights: [] },
  );
  const data = Buffer.concat(paths.map((name) => fs.readFileSync(path.join(folder, name))));
  return {
    load: async () => ({
      modelTopology: model.modelTopology,
      signature: model.signature,
      userDefinedMetadata: model.userDefinedMetadata,
      weightSpecs: weights,
      weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.length),
    }),
  };
}

function unpack({ shape, dtype, data }) {
  const bytes = Buffer.from(data, "base64");
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return tf.tensor(dtype === "float32" ? new Float32Array(buffer) : new Int32Array(buffer), shape, dtype);
}

function pack(tensor) {
  const values = tensor.dataSync();
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("base64");
  return { shape: tensor.shape, dtype: tensor.dtype, data };
}

async function main(folder) {
  await tf.setBackend("cpu");
  const model = await tf.loadGraphModel(handler(folder));
  const given = JSON.parse(fs.readFileSync(0));
  const inputs = Object.fromEntries(Object.entries(given).map(([name, packed]) => [name, unpack(packed)]));
  const names = model.outputs.map((output) => output.name);
  names.sort((a, b) => a.localeCompare(b, "en", { numeric: true })); // Identity, Identity_1, ... Identity_10
  console.log(JSON.stringify([await model.executeAsync(inputs, names)].flat().map(pack)));
}

main(process.argv[2]);
