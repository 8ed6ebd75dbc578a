"""`custom_partitioning` on eight CPU devices, for both partitioners."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.parallel.partitioning import custom_partitioning
from bedrax.parallel.shardy_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule, parse_rule

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "custom_partitioning.py"


def test_eight_cpu_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr


def test_without_devices_it_is_the_function():
    f = custom_partitioning(lambda x, n: lax.mul(x, np.float32(n)), static_argnums=(1,))
    with pytest.raises(ValueError, match="def_partition"):
        f(np.float32(2), 3)
    f.def_partition(lambda *_: None, sharding_rule="->")
    np.testing.assert_allclose(f(np.float32(2), 3), 6)
    with pytest.raises(NotImplementedError, match="custom_vjp"):
        grad(lambda x: f(x, 3))(np.float32(2))


RULES = [
    ("i k, k j -> i j", [(8, 6), (6, 4)], [(8, 4)], "([i, j], [j, k])->([i, k]) {i=8, j=6, k=4}"),
    ("... i -> ... j", [(4, 8, 2)], [(4, 8, 3)], "([i, j, k])->([i, j, l]) {i=4, j=8, k=2, l=3}"),
    ("...1, ... -> ...1", [(3,), (5,)], [(3,)], "([i], [j])->([i]) {i=3, j=5}"),
    ("a (b c) -> a b c", [(4, 8)], [(4, 2, 4)], "([i, jk])->([i, j, k]) {i=4, j=2, k=4}"),
    ("->", [()], [()], "([])->([])"),
]


@pytest.mark.parametrize(("text", "operands", "results", "expected"), RULES)
def test_rule(text, operands, results, expected):
    assert parse_rule(text).text(operands, results) == f"#sdy.op_sharding_rule<{expected}, custom>"


def test_rule_of_objects():
    mapping = ArrayMapping(BATCHING, "i", CompoundFactor("j", "k"))
    rule = SdyShardingRule(
        (mapping,), (mapping,), need_replication_factors=("k",), permutation_factors=("i",), j=2, k=3
    )
    assert rule == parse_rule(
        "... i (j k) -> ... i (j k)", need_replication_factors=("k",), permutation_factors=("i",), j=2, k=3
    )
    expected = "([i, j, kl])->([i, j, kl]) {i=7, j=5, k=2, l=3} need_replication={l} permutation={j}"
    assert rule.text([(7, 5, 6)], [(7, 5, 6)]) == f"#sdy.op_sharding_rule<{expected}, custom>"
    with pytest.raises(ValueError, match="make no dimension of 8"):
        rule.text([(7, 5, 8)], [(7, 5, 8)])
    with pytest.raises(ValueError, match="1 operands, the function has 2"):
        rule.text([(5, 6)] * 2, [(5, 6)])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("i j", {}, "->"),
        ("i ... -> i", {}, "before all"),
        ("1 -> 1", {}, "letter"),
        ("(i j) -> (i j)", {}, "sizes"),
        ("i -> i", {"i": 2}, "whole dimension"),
        ("i -> i", {"q": 2}, "not in the rule"),
        ("(i -> i", {}, "cannot read"),
        ("i -> i", {"reduction_factors": ("q",)}, "not in the rule"),
        ("i -> i", {"reduction_factors": ("i",), "permutation_factors": ("i",)}, "two kinds"),
    ],
)
def test_wrong_partitioning_rules_are_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        parse_rule(text, **options)
