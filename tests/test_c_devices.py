"""C files for small devices: run there they say what they say here, and take no more flash and stack than the files say."""

import re
import subprocess

import numpy as np
import pytest

from c_devices import needs_atmega, needs_cortex_m4, run_atmega, run_cortex_m4
from c_programs import AVR_GCC, image, needs_arm_compiler, needs_avr_compiler, needs_compiler, run_c
from exported_estimators import trained
from exporting import assert_close
from meristem.export import AnyOf, OneOf, Values, to_c
from soak import many
from test_c import WIDTH, random_network, rows_with_gaps
from test_c_integer import scale_of

ATMEGA_FLASH = 32 * 1024  # bytes
NUMBERS = [("float", None), ("float", 8), ("float", 16), ("int", 8), ("int", 16), ("double", None)]


def random_file(seed, folder):
    """A C file of a random network with a random ending, and its rows."""
    rng = np.random.default_rng(seed)
    network, (numbers, bits) = random_network(rng), NUMBERS[seed % len(NUMBERS)]
    n_out = len(network.layers[-1].weight)
    x = rng.normal(size=(40, WIDTH)) + 3
    ending = [OneOf(range(max(2, n_out))), AnyOf(), Values(np.full(n_out, 3.0), np.full(n_out, 0.5))][seed // 6 % 3]
    options = {"scaling": (np.full(WIDTH, 3.0), np.ones(WIDTH)), "ending": ending, "numbers": numbers, "bits": bits, "X": x}
    return to_c(folder / f"model_{seed}.c", network, **options), x, numbers


def bound(source, what="flash") -> int:
    found = re.search(rf"{what}: at most ([\d,]+) byte", source.read_text())
    assert found is not None
    return int(found[1].replace(",", ""))


@needs_arm_compiler
@pytest.mark.parametrize("seed", range(many(6)))
def test_a_linked_image_takes_no_more_flash_than_the_file_says(seed, tmp_path):
    source, _, _ = random_file(seed, tmp_path)
    taken = image(source)["flash"]
    assert 0 < taken <= bound(source)


@needs_arm_compiler
@pytest.mark.parametrize("name", ["iris", "breast-cancer", "counts", "two-targets"])
def test_an_estimator_takes_no_more_flash_than_the_file_says(name, tmp_path):
    estimator, x = trained(name)
    for options in ({}, {"bits": 8, "X": x}):
        source = estimator.to_c(tmp_path / "model.c", **options)
        taken = image(source)["flash"]
        assert taken <= bound(source) <= 1.5 * taken


def test_a_budget_that_is_too_small_is_refused(tmp_path):
    estimator, x = trained("iris")
    estimator.to_c(tmp_path / "in.c", bits=8, X=x, budget="2 KB")
    for options, advice in (({}, "try bits=8"), ({"bits": 8, "X": x}, "try a smaller network")):
        with pytest.raises(ValueError, match=rf"budget='0.5 KB' is 512 bytes, and the file takes up to [\d,]+ bytes.*{advice}"):
            estimator.to_c(tmp_path / "out.c", budget="0.5 KB", **options)
    for wrong in ("two", 0, "2 MB", True):
        with pytest.raises(ValueError, match="budget="):
            estimator.to_c(tmp_path / "out.c", budget=wrong)
    assert not (tmp_path / "out.c").exists()


@needs_avr_compiler
def test_tables_lie_in_flash_on_avr(tmp_path):
    estimator, x = trained("iris")
    for options in ({}, {"bits": 8, "X": x}, {"bits": 16, "X": x, "numbers": "int"}):
        source = estimator.to_c(tmp_path / "model.c", **options)
        compile_ = [AVR_GCC, "-std=c99", "-Wall", "-Wextra", "-Werror", "-mmcu=atmega328p", "-Os", "-c"]
        subprocess.run([*compile_, source, "-o", tmp_path / "model.o"], check=True)
        sizes = subprocess.run(["avr-size", tmp_path / "model.o"], check=True, capture_output=True, text=True).stdout
        assert sizes.splitlines()[1].split()[1:3] == ["0", "0"], "no data, no bss: nothing in memory"
        listed = subprocess.run(["avr-objdump", "-t", tmp_path / "model.o"], check=True, capture_output=True, text=True).stdout
        sections = re.findall(r"^\S+ .* O (\S+)\s", listed, re.MULTILINE)
        assert len(sections) > 2 and set(sections) == {".progmem.data"}, "every table is in flash"


DEVICES = [
    pytest.param(run_cortex_m4, marks=needs_cortex_m4, id="cortex-m4"),
    pytest.param(run_atmega, marks=needs_atmega, id="atmega328p"),
]


def agrees(source, x, run, bits) -> int:
    """Compare a device with this machine: of integers to the bit; return the stack that it took."""
    returned, y = run_c(source, x)
    there = run(source, x)
    assert (there.returned == returned).all()
    if bits:
        assert (there.y == y).all()
    else:
        assert_close(there.y, y)
    return there.stack


@needs_compiler
@pytest.mark.parametrize("run", DEVICES)
@pytest.mark.parametrize("seed", range(many(6)))
def test_a_device_says_what_this_machine_says(seed, run, tmp_path):
    source, x, numbers = random_file(seed, tmp_path)
    if numbers == "double" and run is run_atmega:
        pytest.skip("double is float on AVR")
    if run is run_atmega and bound(source) > ATMEGA_FLASH:
        pytest.skip("the file says that it may not fit into the device's flash")
    rows = rows_with_gaps(x, 6).astype(float)
    if numbers == "int":
        scaled = np.rint(rows * scale_of(source.read_text(), WIDTH)).clip(-(2**31) + 1, 2**31 - 1)
        rows = np.where(np.isfinite(rows), scaled, -(2.0**31))
    stack = agrees(source, rows, run, NUMBERS[seed % len(NUMBERS)][1])
    assert run is run_atmega or 0 < stack <= bound(source, "memory")


@needs_compiler
@pytest.mark.parametrize("run", DEVICES)
def test_an_estimator_takes_no_more_memory_than_a_small_device_has(run, tmp_path):
    estimator, x = trained("iris")
    for options, most in (({}, 200), ({"bits": 8, "X": x}, 100)):
        source = estimator.to_c(tmp_path / "iris.c", **options)
        assert agrees(source, np.asarray(x)[::10], run, options.get("bits")) <= most
