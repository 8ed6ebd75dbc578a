// The network: two graphs that were converted from Python, and the layers of the second, which learn here.

/* global tf */

const PARAMS = ["hidden_kernel", "hidden_bias", "kernel", "bias"];
const [LOGITS, PROBS] = ["Identity:0", "Identity_1:0"]; // results of the graph `head`, as the converter names them
const RATE = 0.003;
const STEPS = 60; // at most, when a digit is taught
const SURE = 0.9; // how probable it is when it counts as learned
const REPEATED = 5; // copies of each taught digit in a batch, with ten rehearsed digits of each class
const CHUNK = 40; // test digits that are read before the page is drawn again

/** A tensor from `{shape, dtype, data}`, where data is base64. */
export function unpack({ shape, dtype, data }) {
  const { buffer } = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return tf.tensor(dtype === "float32" ? new Float32Array(buffer) : new Int32Array(buffer), shape, dtype);
}

const pause = () => new Promise((resolve) => setTimeout(resolve));

export class Network {
  /** Load everything from a folder. `backend` is one of TF.js: the network is small enough for "cpu". */
  static async load(folder, backend = "cpu") {
    await tf.setBackend(backend);
    const [features, head, data] = await Promise.all([
      tf.loadGraphModel(`${folder}/features/model.json`),
      tf.loadGraphModel(`${folder}/head/model.json`),
      fetch(`${folder}/digits.json`).then((answer) => answer.json()),
    ]);
    return new Network(features, head, data);
  }

  constructor(features, head, data) {
    this.graphs = { features, head };
    this.original = Object.fromEntries(PARAMS.map((name) => [name, unpack(data[name])]));
    this.params = Object.fromEntries(PARAMS.map((name) => [name, this.original[name].clone().variable()]));
    this.testImages = unpack(data.test_images);
    this.testLabels = unpack(data.test_labels);
    this.rehearsed = { images: unpack(data.rehearsed_images), labels: unpack(data.rehearsed_labels) };
    this.taught = []; // of {features, label}
    this.count = PARAMS.reduce((sum, name) => sum + this.params[name].size, 0);
  }

  /** What the convolutions make of images, (n, 8, 8, 1) to (n, 256). */
  features(images) {
    return this.graphs.features.execute({ images });
  }

  /** Ten numbers for each image, (n, 10): probabilities, or their logarithms up to a constant. */
  head(features, result = PROBS) {
    return this.graphs.head.execute({ features, ...this.params }, result);
  }

  /** Ten probabilities for 64 numbers. */
  read(pixels) {
    return tf.tidy(() => this.head(this.features(tf.tensor(pixels, [1, 8, 8, 1]))).dataSync());
  }

  /** The mean loss of what the head makes of features, against labels. */
  loss(features, labels) {
    return tf.losses.softmaxCrossEntropy(tf.oneHot(labels, 10), this.head(features, LOGITS));
  }

  /** The gradient of the loss by all parameters of the head: TF.js differentiates the loaded graph. */
  gradients(features, labels) {
    const variables = PARAMS.map((name) => this.params[name]);
    const { value, grads } = tf.variableGrads(() => this.loss(features, labels), variables);
    value.dispose();
    return Object.fromEntries(PARAMS.map((name) => [name, grads[this.params[name].name]]));
  }

  /** Learn that 64 numbers are this digit, beside what was taught before and some digits of the training; false if the
   * steps did not suffice. `each(probabilities)` is called after every step. */
  async teach(pixels, label, each) {
    const { images, labels } = this.rehearsed;
    this.rehearsed.features ??= tf.tidy(() => this.features(images));
    const features = tf.tidy(() => this.features(tf.tensor(pixels, [1, 8, 8, 1])));
    this.taught.push({ features, label });
    const lessons = this.taught.flatMap((lesson) => Array(REPEATED).fill(lesson));
    const [batch, targets] = tf.tidy(() => [
      tf.concat([this.rehearsed.features, ...lessons.map((lesson) => lesson.features)]),
      tf.concat([labels, tf.tensor1d(lessons.map((lesson) => lesson.label), "int32")]),
    ]);
    const optimizer = tf.train.adam(RATE);
    let learned = false;
    for (let i = 0; i < STEPS && !learned; i++) {
      const grads = this.gradients(batch, targets);
      optimizer.applyGradients(Object.fromEntries(PARAMS.map((name) => [this.params[name].name, grads[name]])));
      tf.dispose(grads);
      const probs = tf.tidy(() => this.head(features).dataSync());
      learned = probs[label] > SURE;
      each(probs);
      await pause();
    }
    tf.dispose([batch, targets]);
    optimizer.dispose();
    return learned;
  }

  /** Back to the parameters that were trained in Python. */
  forget() {
    PARAMS.forEach((name) => this.params[name].assign(this.original[name]));
    this.taught.forEach(({ features }) => features.dispose());
    this.taught = [];
  }

  /** Probabilities of all test digits, (n, 10). */
  async readTests() {
    if (!this.testFeatures) {
      const parts = [];
      for (let i = 0; i < this.testImages.shape[0]; i += CHUNK) {
        const size = Math.min(CHUNK, this.testImages.shape[0] - i);
        parts.push(tf.tidy(() => this.features(this.testImages.slice([i, 0, 0, 0], [size, -1, -1, -1]))));
        await pause();
      }
      this.testFeatures = tf.concat(parts);
      tf.dispose(parts);
    }
    return tf.tidy(() => this.head(this.testFeatures));
  }

  /** How many of the test digits are read right, and how many there are. */
  async score() {
    const probs = await this.readTests();
    const right = tf.tidy(() => probs.argMax(-1).equal(this.testLabels).sum().dataSync()[0]);
    probs.dispose();
    return { right, all: this.testLabels.size };
  }
}
