"""Java's hash of a string, by which Kafka assigns groups and transactions to partitions."""


def java_string_hash(text: str) -> int:
    """As java.lang.String.hashCode: over UTF-16 code units, in signed 32 bits."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(encoded), 2):
        value = (31 * value + (encoded[i] << 8 | encoded[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def java_partition_for(key: str, num_partitions: int) -> int:
    """The partition Kafka gives to a key: the hash without its sign; the least int counts as 0."""
    value = java_string_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % num_partitions
