import pytest

from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import Password
from kafkapy.common.security.sasl.jaas_config import JaasConfig, quoted

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        f'{MODULE} required username="alice" password="s3cret";',
        f"{MODULE} REQUIRED\n  username='alice'\n  password='s3cret' ;\n",
        f"// whose\n{MODULE} optional username=alice /* no\nquotes */ password=s3cret;",
        f'{MODULE} required username = "al\\ice" password= "s3cret";',
    ],
)
def test_login_module_and_its_options_are_read(text: str) -> None:
    login = JaasConfig.parse(Password(text))

    assert login.login_module == MODULE
    assert dict(login.options) == {"username": "alice", "password": "s3cret"}
    assert login.option("username") == "alice"


@pytest.mark.parametrize(
    "value", ["", ";", "=", 'a"b', "a\\b;", "it's", "x=y; /* z", "two\nlines", "é"]
)
def test_quoted_value_is_read_back(value: str) -> None:
    login = JaasConfig.parse(Password(f"M required password={quoted(value)};"))

    assert login.option("password") == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a login module, a flag"),
        (f'{MODULE} required password="s3cret"', "a login module, a flag"),
        (f'{MODULE} password="s3cret";', "one of optional, required"),
        (f'{MODULE} required password "s3cret";', "name=value"),
        (f"{MODULE} required password=;", "name=value"),
        (f'{MODULE} required password="s3cret;', "from character 75 on"),
        (f'{MODULE} required password="s3cret"; {MODULE} required x=y;', "one login module only"),
        (f'{MODULE} required user="alice";', "password is missing"),
    ],
)
def test_complaint_says_what_is_wrong_and_nothing_of_the_text(text: str, complaint: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"sasl\.jaas\.config") as raised:
        JaasConfig.parse(Password(text)).option("password")

    assert complaint in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_options_do_not_show() -> None:
    login = JaasConfig.parse(Password(f'{MODULE} required password="s3cret";'))

    assert "s3cret" not in f"{login!r} {login}"
