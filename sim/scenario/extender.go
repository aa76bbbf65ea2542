package scenario

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-scheduler/berth/core/machine"
)

// extender is a service that is asked about the nodes of every pod, and refuses some.
type extender struct {
	reason string   // "#" in it stands for how often it was asked
	nodes  []string // those that it refuses; none: all
	asked  int
}

// extend declares the story's extender, on which the scheduler depends.
func (p *play) extend(words []string) error {
	switch {
	case p.world != nil:
		return errors.New("must stand before what happens")
	case p.extender != nil:
		return errors.New("there is one already")
	case len(words) == 0:
		return errors.New("want a reason, and the nodes that it refuses")
	}
	p.extender = &extender{reason: words[0], nodes: words[1:]}
	return nil
}

// options returns what the scheduler knows of the extender.
func (x *extender) options() []machine.Extender {
	return []machine.Extender{{Name: "extender", Filter: true, Limit: 1, Timeout: time.Second}}
}

// answer says which nodes pass.
func (x *extender) answer(e machine.CallExtender) machine.ExtenderReply {
	x.asked++
	reply := machine.ExtenderReply{UID: e.Pod.UID, Call: e.Call, Failed: map[string]string{}}
	for _, n := range e.Nodes {
		if len(x.nodes) > 0 && !slices.Contains(x.nodes, n.Name) {
			reply.Passed = append(reply.Passed, n.Name)
			continue
		}
		reply.Failed[n.Name] = strings.ReplaceAll(x.reason, "#", strconv.Itoa(x.asked))
	}
	return reply
}
