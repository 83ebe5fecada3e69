from kafkapy.pipeline.jobs.pipeline_summary import shown_options


def test_secrets_are_not_shown() -> None:
    shown = shown_options(
        {
            "kafka.sasl.jaas.config": "x",
            "kafka.ssl.key.password": "x",
            "kafka.ssl.keystore.key": "x",
            "kafka.ssl.truststore.certificates": "x",
            "spark.hadoop.fs.s3a.secret.key": "x",
            "spark.hadoop.fs.s3a.access.key": "x",
            "spark.driver.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=x",
            "url": "https://bob:x@example.com/",
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.location": "/run/secrets/ca.pem",
        }
    )

    assert shown == (
        "kafka.sasl.jaas.config=[hidden] kafka.ssl.key.password=[hidden]"
        " kafka.ssl.keystore.key=[hidden] kafka.ssl.truststore.certificates=[hidden]"
        " spark.hadoop.fs.s3a.secret.key=[hidden] spark.hadoop.fs.s3a.access.key=[hidden]"
        " spark.driver.extraJavaOptions=[hidden] url=[hidden]"
        " kafka.security.protocol=SSL kafka.ssl.truststore.location=/run/secrets/ca.pem"
    )
