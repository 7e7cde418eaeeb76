"""Records of verifications, as `semisync verify --json` prints them."""

PASSED = {
    "schema": "semisync.verification/1",
    "verified": True,
    "source": "model.ckpt-1",
    "directory": "converted",
    "sample": None,
    "tensors": 12,
    "rows": 40_000,
    "hashes": 14,
    "differing_rows": 0,
    "bound": 0.0,
    "confidence": 0.95,
    "differences": [],
    "notes": [],
}
