"""The covariance of the process: what makes two ratings alike."""
