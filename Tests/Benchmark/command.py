"""Programs that the benchmark starts beside the measured ones."""
import subprocess


def expect(words, **more):
    """Runs a program that has to succeed; what it writes to its standard output."""
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, **more)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {result.returncode}: {result.stderr.decode(errors='replace')[-1000:]}")
    return result.stdout
