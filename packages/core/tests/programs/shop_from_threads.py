"""Sixteen threads look up the same lazy names."""

import threading

import shop

start, found = threading.Barrier(16), []


def ask():
    start.wait()
    found.append((shop.apple, shop.till.coins))


threads = [threading.Thread(target=ask) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), set(found))
