"""Runs of a pass, one for each point that a grid enumerates, by several workers at once (bench.py)."""
import collections
import concurrent.futures
import queue
import subprocess

TRIES = 3


def common(trace):
    """The points that each of TRIES passes has, in the order of the last one: how many pieces come together to the writer, and
    so how many writes there are, differs from pass to pass."""
    passes = [trace() for _ in range(TRIES)]
    return [point for point in passes[-1] if all(point in points for points in passes)]


def examine_all(workers, points, examine):
    """(point, reached, violations) for each of the points, in their order; each worker does one at a time. What a pass did
    not reach is tried again, TRIES times in all. Violations are printed as they come."""
    idle = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def one(point):
        worker = idle.get()
        try:
            for _ in range(TRIES):
                reached, violations = examine(worker, point)
                if reached or violations:
                    break
        except (SystemExit, OSError, subprocess.SubprocessError) as error:
            reached, violations = False, [f"{point}: {type(error).__name__} {error}"]
        finally:
            idle.put(worker)
        for text in violations:
            print(f"{worker.label}: {text}", flush=True)
        return point, reached, violations

    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(one, points))


def tell_unreached(results, label, trace, call_of=lambda point: point):
    """Prints the points that no pass reached, and why: the last such call of one more pass, as `trace` enumerates it. Which
    thread does what, and in how many pieces, differs from pass to pass, and more so beside other work.

    Returns how many of them that pass did not have either: on this machine they are no points of each pass now."""
    missed = [point for point, reached, violations in results if not reached and not violations]
    if not missed:
        return 0
    last = collections.Counter()
    for name, number in trace():
        last[name] = max(last[name], number)
    absent = 0
    for point in missed:
        name, number = call_of(point)
        absent += last[name] < number
        why = "made it: not every pass has one so late" if last[name] >= number else f"made {last[name]} of them"
        print(f"{label}: {name} #{number} not reached in {TRIES} passes; one more pass {why}", flush=True)
    return absent
