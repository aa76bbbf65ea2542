package compat

import (
	"errors"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-scheduler/berth/core/decision"
)

var codes = map[fwk.Code]decision.Code{
	fwk.Success: decision.Success, fwk.Error: decision.Error, fwk.Unschedulable: decision.Unschedulable,
	fwk.UnschedulableAndUnresolvable: decision.UnschedulableAndUnresolvable, fwk.Wait: decision.Wait,
	fwk.Skip: decision.Skip, fwk.Pending: decision.Pending,
}

// statusOf returns a plugin's status, nil for success. A code that does not exist is an
// error.
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

func failure(err error) *decision.Status {
	return &decision.Status{Code: decision.Error, Reasons: []string{err.Error()}, Err: err}
}

// hosted returns a status of ours, as plugins see it.
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
