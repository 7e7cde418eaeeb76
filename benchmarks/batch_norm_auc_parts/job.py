"""One process of the cluster, as `auc_evidence_parts.job`, for models with BatchNorm.

    python -m benchmarks.batch_norm_auc_parts.job SPEC

SPEC is the same; `training` describes the further entries of a run, `scoring` the chief's files.
"""

from benchmarks.auc_evidence_parts import job
from benchmarks.batch_norm_auc_parts.scoring import leave_scores
from benchmarks.batch_norm_auc_parts.training import NormTraining

if __name__ == "__main__":
    job.main(NormTraining, leave_scores)
