package plan

import (
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// SideOf returns the implementation of a planned commit. If the commit cannot be judged, skip says why.
func SideOf(job runners.Job, err error) (side runners.Side, skip string, _ error) {
	if mistake, ok := errors.AsType[usage.Error](err); ok {
		return side, mistake.Error(), nil // it does not have the kernel, or its files cannot be read
	}
	switch {
	case err != nil:
		return side, "", err
	case job.Removed:
		return side, "it does not have the kernel", nil
	case len(job.Broken) > 0:
		return side, fmt.Sprintf("%s:%d: %s", job.Broken[0].File, job.Broken[0].Line, job.Broken[0].Message), nil
	case job.Unready != "":
		return side, "", errors.New(job.Unready)
	}
	return job.Candidate, "", nil
}
