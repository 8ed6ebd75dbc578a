#!/bin/bash
#SBATCH --job-name=train
#SBATCH --ntasks=2            # processes
#SBATCH --time=00:10:00
#SBATCH --requeue             # a job that is started again gets other ports
#SBATCH --signal=TERM@60      # announces the end a minute before
# On nodes with GPUs, one process per GPU:
##SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8

srun "${PYTHON:-python}" train.py
