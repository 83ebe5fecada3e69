"""Not how fast, only whether: a tenth of a second of each limit server."""

from pathlib import Path

import pytest

from tests.benchmarks import frames
from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.load_program import LoadProgram, Sample


@pytest.fixture
def program() -> LoadProgram:
    built = LoadProgram.build()
    if built is None:
        pytest.skip("no C compiler")
    return built


def _run(program: LoadProgram, port: int, requests: frames.Frames, *, check_errors: bool) -> Sample:
    return program.client(
        ("127.0.0.1", port),
        requests,
        connections=3,
        pipelined=2,
        seconds=0.1,
        check_errors=check_errors,
    )


def test_the_answering_server_answers_every_request(program: LoadProgram) -> None:
    with program.server("server", 50, None) as port:
        sample = _run(program, port, frames.smallest(), check_errors=True)

    assert sample.requests > 0
    assert sample.bytes_per_answer == pytest.approx(50, rel=0.1)
    assert sample.p50_ms <= sample.p99_ms <= sample.p999_ms


def test_the_writing_server_keeps_what_it_was_sent(program: LoadProgram, tmp_path: Path) -> None:
    requests = frames.produce("topic", 1, frames.small_batch())
    (request,) = requests.requests
    file = tmp_path / "written"

    with program.server("write-server", 50, file) as port:
        sample = _run(program, port, requests, check_errors=False)

    written = file.read_bytes()
    assert len(written) >= sample.requests * len(request)
    assert len(written) % len(request) == 0
    # All but the correlation id is as it was sent.
    assert written[: len(request)][12:] == request[12:]


def test_the_sending_server_goes_round_its_file(program: LoadProgram, tmp_path: Path) -> None:
    file = tmp_path / "sent"
    file.write_bytes(bytes(frames.SLICE_BYTES * 2))

    with program.server("send-server", frames.SLICE_BYTES, file) as port:
        sample = _run(program, port, frames.smallest(), check_errors=False)

    assert sample.requests > 2
    assert sample.bytes_per_answer >= frames.SLICE_BYTES


def test_an_error_code_in_an_answer_ends_the_run(program: LoadProgram, tmp_path: Path) -> None:
    file = tmp_path / "sent"
    file.write_bytes(b"\x00\x07" * frames.SLICE_BYTES)

    with (
        program.server("send-server", frames.SLICE_BYTES, file) as port,
        pytest.raises(BenchmarkError, match="error code 7"),
    ):
        _run(program, port, frames.smallest(), check_errors=True)
