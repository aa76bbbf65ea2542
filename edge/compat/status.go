package compat

import (
	"errors"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
)

// codes maps kube-scheduler's status codes to core's.
var codes = map[fwk.Code]decision.Code{
	fwk.Success: decision.Success, fwk.Error: decision.Error, fwk.Unschedulable: decision.Unschedulable,
	fwk.UnschedulableAndUnresolvable: decision.UnschedulableAndUnresolvable, fwk.Wait: decision.Wait,
	fwk.Skip: decision.Skip, fwk.Pending: decision.Pending,
}

// statusOf converts a plugin's status to core's; nil for success. An unknown code
// becomes an Error.
func statusOf(s *fwk.Status) *decision.Status {
	if s.IsSuccess() {
		return nil
	}
	code, known := codes[s.Code()]
	if !known {
		return failure(errors.New("it returned a status with an unknown code: " + s.Message()))
	}
	out := &decision.Status{Code: code, Reasons: s.Reasons()}
	if code == decision.Error {
		out.Err = s.AsError()
	}
	return out
}

// failure returns an Error status.
func failure(err error) *decision.Status {
	return &decision.Status{Code: decision.Error, Reasons: []string{err.Error()}, Err: err}
}

// hosted converts core's status to kube-scheduler's; nil for success. A status with an error, or
// with a code that kube-scheduler does not have, becomes an Error.
func hosted(s *decision.Status) *fwk.Status {
	if s == nil || s.Code == decision.Success {
		return nil
	}
	for theirs, ours := range codes { // any order: one matches
		if ours == s.Code {
			status := fwk.NewStatus(theirs, s.Reasons...).WithPlugin(s.Plugin)
			if s.Err != nil {
				status = fwk.AsStatus(s.Err).WithPlugin(s.Plugin)
			}
			return status
		}
	}
	return fwk.AsStatus(errors.New(s.String()))
}
