package whatif

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/sim"
)

// NodesFit is how many more nodes of a shape place all pods.
type NodesFit struct {
	Shape string
	// Nodes is the least number after which no more help.
	Nodes int
	// Placed are the pods that they place, beyond those that have a node
	// without them.
	Placed int
	// Unplaced has the reasons why pods stay pending all the same, by
	// namespace/name.
	Unplaced map[string]string
	// Notices are for the user.
	Notices []string
}

// FitNodes finds how few more nodes of a shape place all pods that can be
// placed on such nodes, once the changes are made. Pods that are preempted count as pending. It takes it
// that more nodes never place fewer pods. Each run has a scheduler of its own,
// which options describes.
func FitNodes(set *manifest.Set, in sim.Input, options func() (machine.Options, error), after []Change, shape string) (*NodesFit, error) {
	results := map[int]map[string]string{}
	var notices []string // of the last run
	unplaced := func(n int) (map[string]string, error) {
		if results[n] != nil {
			return results[n], nil
		}
		changes := slices.Clip(after)
		if n > 0 {
			changes = append(changes, Change{Verb: "add-nodes", Operands: []string{fmt.Sprint(n), shape}})
		}
		var err error
		if in.Machine, err = options(); err != nil {
			return nil, err
		}
		r, err := Run(set.Clone(), in, changes, Options{})
		if cause := errors.Unwrap(err); n > 0 && cause != nil { // of the shape: without it the run went well
			return nil, fmt.Errorf("--nodes-like: %w", cause)
		}
		if err != nil && len(after) > 0 {
			return nil, fmt.Errorf("--after: %w", err)
		}
		if err != nil {
			return nil, err
		}
		if r.Cut != "" { // how many are needed is not known then
			return nil, errors.New(r.Cut)
		}
		results[n], notices = r.Unplaced, endlessNotices(r.Result)
		return r.Unplaced, nil
	}
	without, err := unplaced(0)
	if err != nil {
		return nil, err
	}
	most := min(max(len(without), 1), maxAdded) // a node that helps places at least one pod
	least, err := unplaced(most)
	if err != nil {
		return nil, err
	}
	low, high := 0, most // with high nodes as few pods are pending as can be
	for low < high {
		middle := (low + high) / 2
		with, err := unplaced(middle)
		if err != nil {
			return nil, err
		}
		if len(with) <= len(least) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return &NodesFit{Shape: shape, Nodes: high, Placed: len(without) - len(results[high]), Unplaced: results[high], Notices: notices}, nil
}
