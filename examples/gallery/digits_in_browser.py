"""Digits in the browser: a network in one file of HTML.

The network is trained here. The page has its parameters as JSON and computes it in a few lines of JavaScript. Draw a digit
with the mouse or a finger. The page loads nothing from the network.
"""

import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Digits</title>
<style>body{font:1.2em sans-serif;text-align:center}canvas{background:#000;touch-action:none;width:16em;height:16em}</style>
<canvas id="c" width="8" height="8"></canvas><p id="out">Draw a digit.</p><button onclick="clean()">Again</button>
<script>const P=PARAMS;
const dense=(x,w,b)=>b.map((s,j)=>x.reduce((t,v,i)=>t+v*w[i][j],s));
function predict(x){const y=dense(dense(x,P.w1,P.b1).map(Math.tanh),P.w2,P.b2).map(v=>Math.exp(v));
const t=y.reduce((a,b)=>a+b);return y.map(v=>v/t)}
if(typeof document!="undefined"){const c=document.getElementById("c"),g=c.getContext("2d",{willReadFrequently:true});
g.strokeStyle="#fff";g.lineWidth=1.2;g.lineCap="round";let last=null;
const at=e=>{const r=c.getBoundingClientRect();return[(e.clientX-r.left)*8/r.width,(e.clientY-r.top)*8/r.height]};
c.onpointerdown=e=>{last=at(e)};onpointerup=()=>{last=null};
c.onpointermove=e=>{if(!last)return;g.beginPath();g.moveTo(...last);last=at(e);g.lineTo(...last);g.stroke();
const d=g.getImageData(0,0,8,8).data,p=predict(Array.from({length:64},(_,i)=>d[4*i]/255)),n=p.indexOf(Math.max(...p));
document.getElementById("out").textContent=n+" ("+Math.round(100*p[n])+" %)"};
window.clean=()=>g.clearRect(0,0,8,8)}
</script>"""


def predict(p, x):
    return jax.nn.softmax(jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"])


def main():
    images, labels = load_digits(return_X_y=True)
    images, mixed = (images / 16).astype(np.float32), np.random.default_rng(0).permutation(len(images))
    train, test = mixed[:1400], mixed[1400:]
    a, b = jax.random.split(jax.random.key(0))
    params = {"w1": jax.random.normal(a, (64, 32)) / 8, "b1": jnp.zeros(32)}
    params |= {"w2": jax.random.normal(b, (32, 10)) / 6, "b2": jnp.zeros(10)}
    loss = lambda p: -jnp.mean(jnp.log(predict(p, images[train])[jnp.arange(1400), labels[train]] + 1e-9))
    step = jax.jit(lambda p: jax.tree.map(lambda p, g: p - g, p, jax.grad(loss)(p)))
    for _ in range(250):
        params = step(params)
    found = np.asarray(predict(params, images[test]))
    page = Path(tempfile.mkdtemp(), "digits.html")
    numbers = json.dumps(jax.tree.map(lambda p: np.round(p, 5).tolist(), params))
    page.write_text(PAGE.replace("PARAMS", numbers), encoding="utf-8")
    print(f"{np.mean(found.argmax(1) == labels[test]):.1%} of the test digits are read; open {page}")
    return images[test], found, page


def picture(data):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4))
    for n, axes in enumerate(figure.subplots(3, 4).flat):
        axes.imshow(data[0][n].reshape(8, 8), cmap="gray")
        axes.set_title(f"{data[1][n].argmax()}: {data[1][n].max():.0%}", fontsize=10)
        axes.axis("off")
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
