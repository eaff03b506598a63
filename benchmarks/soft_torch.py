"""jaxalign.torch: its overhead, and its times beside soft DTW in Triton.

    python benchmarks/soft_torch.py --json soft_torch.json    # a GPU, or a CPU
    python benchmarks/soft_torch.py --quick                   # too small for figures

values    largest differences of results and gradients, of CUDA tensors from the CPU's
training  20 steps of a small network through ``alignment_log_prob``, on either device
overhead  microseconds of a call on 4 pairs of 5 x 6, beside the jitted function of JAX
times     score and gradient, ms: by PyTorch, by JAX, and of ``soft_dtw`` (one state)
matrix    ``hard_matrix`` of embeddings of bfloat16, 1,024 wide: 10^12 cells a second
"""

import argparse

import measure


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="too small for figures")
    parser.add_argument("--json", help="file for the figures")
    args = parser.parse_args(argv)
    import torch
    import torch_tables as tables

    quick = args.quick or not torch.cuda.is_available()
    job = (4, 20, 8, "1MiB") if quick else (256, 384, 1024, "16GiB")
    report = {"machine": measure.machine(), "torch": torch.__version__}
    measure.show_machine(report["machine"])
    report |= {
        "times": tables.times(
            tables.QUICK if quick else tables.SIZES, 3 if quick else 7
        ),
        "values": tables.values(),
        "overhead": tables.overhead(50 if args.quick else 1000),
        "matrix": tables.matrix(*job),
        "training": tables.training(),
    }
    measure.save(args.json, report)


if __name__ == "__main__":
    main()
