// node check.cjs URL EXPECTED.json SCREENSHOT.png CHROMIUM
//
// Opens the page in a headless Chromium, compares what it computes with what Python computed, draws digits with the mouse,
// teaches one, and takes a picture. Prints JSON.

const fs = require("node:fs");
const { chromium } = require("playwright-core");

const [url, expectedFile, picture, executablePath] = process.argv.slice(2);
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const circle = (x, y, rx, ry, from = 0, to = 2 * Math.PI) =>
  Array.from({ length: 25 }, (_, i) => from + ((to - from) * i) / 24).map((a) => [x + rx * Math.sin(a), y - ry * Math.cos(a)]);

// Digits as a hand would draw them: strokes of points in the unit square.
const DRAWN = [
  [circle(0.5, 0.5, 0.2, 0.32)],
  [[[0.42, 0.3], [0.54, 0.16], [0.53, 0.5], [0.52, 0.84]]],
  [[...circle(0.48, 0.33, 0.17, 0.17, -1.3, 2.2), [0.3, 0.8], [0.5, 0.79], [0.72, 0.8]]],
  [[...circle(0.46, 0.32, 0.17, 0.15, -1.2, 2.9), ...circle(0.46, 0.65, 0.2, 0.17, 0.2, 4.2)]],
  [[[0.46, 0.15], [0.3, 0.55], [0.72, 0.55]], [[0.6, 0.36], [0.56, 0.85]]],
  [[[0.68, 0.18], [0.38, 0.19], [0.36, 0.46], ...circle(0.46, 0.62, 0.19, 0.19, -0.3, 4)]],
  [[[0.58, 0.14], [0.42, 0.34], [0.35, 0.58], ...circle(0.5, 0.66, 0.16, 0.17, -1.6, 4.6)]],
  [[[0.3, 0.18], [0.7, 0.18], [0.5, 0.5], [0.42, 0.84]]],
  [[...circle(0.5, 0.33, 0.14, 0.16, 3.1, -3.1), ...circle(0.5, 0.66, 0.18, 0.18, 0.1, 6.3)]],
  [[...circle(0.5, 0.34, 0.16, 0.18, 1.5, -4.7), [0.65, 0.55], [0.6, 0.84]]],
];

// An eight that was left open at both ends, which reads as a 3; and a 1 with a foot, which leaves some doubt.
const OPEN_EIGHT = [[...circle(0.5, 0.33, 0.15, 0.16, -0.9, 2.9), ...circle(0.48, 0.66, 0.18, 0.18, 0.1, 5.2)]];
const DOUBTFUL = [[[0.3, 0.42], [0.55, 0.16], [0.55, 0.84]], [[0.38, 0.84], [0.72, 0.84]]];

async function draw(page, strokes) {
  const { x, y, width } = await page.locator("#paper").boundingBox();
  const at = ([px, py]) => [x + px * width, y + py * width];
  if (await page.locator("#clear").isEnabled()) await page.locator("#clear").click();
  for (const [first, ...rest] of strokes) {
    await page.mouse.move(...at(first));
    await page.mouse.down();
    for (const point of rest) await page.mouse.move(...at(point), { steps: 3 });
    await page.mouse.up();
  }
  // Two frames: the second one shows the changes that the first one requested.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.locator("#digit").textContent();
}

/** The largest differences from what Python computed, of probabilities and of gradients. */
const compare = (page, expected) =>
  page.evaluate(async (expected) => {
    const { unpack } = await import("./network.js");
    const worst = (x, y) => x.sub(y).abs().max().dataSync()[0];
    const { network } = window;
    const batch = expected.batch;
    const labels = network.testLabels.slice(0, batch).add(1).mod(10);
    const found = network.gradients(network.features(network.testImages.slice(0, batch)), labels.toInt());
    const gradients = Object.entries(expected.gradients).map(([name, packed]) => worst(found[name], unpack(packed)));
    return { probs: worst(await network.readTests(), unpack(expected.probs)), gradients: Math.max(...gradients) };
  }, expected);

/** When a lesson is over. */
const settled = (page) =>
  page.waitForFunction(() => document.getElementById("status").textContent.endsWith("are read right"));

async function main() {
  const browser = await chromium.launch({ executablePath, args: FLAGS });
  try {
    const page = await browser.newPage({ viewport: { width: 1080, height: 860 }, deviceScaleFactor: 1.5 });
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    const requests = new Set();
    page.on("request", (request) => requests.add(new URL(request.url()).host));
    await page.goto(url);
    await page.waitForFunction(() => window.network);

    const differences = await compare(page, JSON.parse(fs.readFileSync(expectedFile)));
    const read = [];
    for (const strokes of DRAWN) read.push(await draw(page, strokes));

    const score = () => page.evaluate(async () => (await window.network.score()).right);
    const lesson = { first: await draw(page, OPEN_EIGHT), before: await score() };
    await page.locator("#bars button").nth(8).click();
    await settled(page);
    Object.assign(lesson, { then: await draw(page, OPEN_EIGHT), after: await score() });
    await page.locator("#forget").click();
    lesson.forgotten = await draw(page, OPEN_EIGHT);
    const again = await compare(page, JSON.parse(fs.readFileSync(expectedFile)));

    await draw(page, DOUBTFUL);
    await page.waitForTimeout(300); // until the bars have moved
    await page.screenshot({ path: picture });
    console.log(JSON.stringify({ differences, read, lesson, again, errors, hosts: [...requests] }));
  } finally {
    await browser.close();
  }
}

main();
