"""Prints the names of a lazy package, before and after their first use."""

import shop

print(shop.__all__)
print([n for n in dir(shop) if n[0] != "_" and n not in shop.__all__])
print(shop.apple, shop.birne, shop._hidden, shop.crate, shop.till.coins, shop.flour, shop.path.sep)
print("apple" in vars(shop), hasattr(shop, "salt"), hasattr(shop, "pear"))
