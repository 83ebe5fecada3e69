"""What hypothesis builds records from."""

from hypothesis import strategies as st

from kafkapy.common.compression import CompressionType
from kafkapy.common.record.record import Header, SimpleRecord

optional_bytes = st.none() | st.binary(max_size=80)
timestamps = st.integers(-1, 2**62)
headers = st.lists(
    st.builds(Header, st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3
).map(tuple)
simple_records = st.builds(SimpleRecord, timestamps, optional_bytes, optional_bytes, headers)
records_lists = st.lists(simple_records, min_size=1, max_size=8)

# zstd came with magic 2.
magics_and_codecs = st.sampled_from(
    [
        (magic, codec)
        for magic in (0, 1, 2)
        for codec in CompressionType
        if magic == 2 or codec is not CompressionType.ZSTD
    ]
)
