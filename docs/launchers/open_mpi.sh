#!/bin/bash
# Two processes on this machine. On several hosts: mpirun --host node1:8,node2:8 -n 16
set -e
cd "$(dirname "$0")"
mpirun -n 2 "${PYTHON:-python}" train.py
