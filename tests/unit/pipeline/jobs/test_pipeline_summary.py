from kafkapy.pipeline.jobs.pipeline_summary import shown_options


def test_secrets_are_not_shown() -> None:
    shown = shown_options(
        {
            "kafka.sasl.jaas.config": "x",
            "kafka.ssl.key.password": "x",
            "kafka.ssl.keystore.key": "x",
            "spark.hadoop.fs.s3a.secret.key": "x",
            "kafka.security.protocol": "SSL",
        }
    )

    assert shown == (
        "kafka.sasl.jaas.config=[hidden] kafka.ssl.key.password=[hidden]"
        " kafka.ssl.keystore.key=[hidden] spark.hadoop.fs.s3a.secret.key=[hidden]"
        " kafka.security.protocol=SSL"
    )
