import pytest

from kafkapy.common.errors import (
    ApiError,
    Errors,
    InvalidMetadataError,
    KafkaError,
    NotLeaderOrFollowerError,
    RequestTimeoutError,
    RetriableError,
)


def test_codes_run_from_minus_one_without_gaps() -> None:
    assert [error.code for error in Errors] == list(range(-1, 129))


@pytest.mark.parametrize("error", [error for error in Errors if error is not Errors.NONE])
def test_every_error_has_a_sentence_and_an_exception_of_its_own(error: Errors) -> None:
    exception = error.exception()

    assert error.message.endswith(".")
    assert error.message[0].isupper()
    assert str(exception) == error.message
    assert Errors.for_exception(exception) is error
    assert Errors.for_code(error.code) is error


def test_texts_differ() -> None:
    texts = [error.message for error in Errors]

    assert len(set(texts)) == len(texts)


def test_none_has_no_exception() -> None:
    with pytest.raises(ValueError, match="NONE"):
        Errors.NONE.exception()


def test_own_text_replaces_the_default() -> None:
    assert str(Errors.INVALID_CONFIG.exception("retention.ms: not a number")) == (
        "retention.ms: not a number"
    )


def test_subclass_takes_the_code_of_its_nearest_ancestor() -> None:
    class StillStarting(NotLeaderOrFollowerError):
        pass

    assert Errors.for_exception(StillStarting()) is Errors.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("error", [KafkaError("x"), ApiError("x"), ValueError("x")])
def test_errors_without_a_code_are_unknown_server_errors(error: Exception) -> None:
    assert Errors.for_exception(error) is Errors.UNKNOWN_SERVER_ERROR


def test_unknown_code_is_an_unknown_server_error() -> None:
    assert Errors.for_code(9999) is Errors.UNKNOWN_SERVER_ERROR


def test_retriability_is_in_the_class() -> None:
    assert issubclass(NotLeaderOrFollowerError, InvalidMetadataError)
    assert issubclass(RequestTimeoutError, RetriableError)
    assert not issubclass(RequestTimeoutError, InvalidMetadataError)
    assert Errors.OFFSET_OUT_OF_RANGE.exception_class is not None
    assert not issubclass(Errors.OFFSET_OUT_OF_RANGE.exception_class, RetriableError)
