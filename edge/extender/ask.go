package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/fence"
)

// A reply may be so long: some words about each node, twice what was sent (the
// nodes come back), and a base.
const (
	replyBase    = 1 << 20
	replyPerNode = 4 << 10
)

// Answer puts the question to the extender and waits for the answer, for as
// long as the extender's timeout at most.
func (x Extenders) Answer(ctx context.Context, e machine.CallExtender) machine.ExtenderReply {
	s := x[e.Extender]
	answer := machine.ExtenderReply{UID: e.Pod.UID, Call: e.Call}
	switch e.Verb {
	case machine.Filter:
		answer.Err = s.filter(ctx, e, &answer)
	case machine.Prioritize:
		answer.Scores, answer.Err = s.prioritize(ctx, e)
	case machine.Preempt:
		answer.Victims, answer.Err = s.preempt(ctx, e)
	}
	return answer
}

// filterReply is an ExtenderFilterResult, with no more of the nodes than is
// looked at. What else a node says is not decoded: one that is a megabyte long
// costs nothing, and a quantity such as 1e-999999999, on which Kubernetes'
// decoder works for hours, does no harm.
type filterReply struct {
	Nodes *struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	NodeNames                               *[]string
	FailedNodes, FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	Error                                   string
}

func (s *service) filter(ctx context.Context, e machine.CallExtender, answer *machine.ExtenderReply) error {
	var reply filterReply
	if err := s.send(ctx, s.verb(e.Verb), s.about(e), &reply, len(e.Nodes)); err != nil {
		return err
	}
	if reply.Error != "" {
		return errors.New(reply.Error)
	}
	passed, err := s.passed(e, &reply)
	answer.Passed, answer.Failed, answer.Unresolvable = passed, cut(reply.FailedNodes), cut(reply.FailedAndUnresolvableNodes)
	return err
}

func (s *service) prioritize(ctx context.Context, e machine.CallExtender) (map[string]int64, error) {
	var reply extenderv1.HostPriorityList
	if err := s.send(ctx, s.verb(e.Verb), s.about(e), &reply, len(e.Nodes)); err != nil {
		return nil, err
	}
	scores, err := scores(e, reply)
	if err != nil {
		return nil, s.bad(e.Verb, err)
	}
	return scores, nil
}

// about is a question about nodes.
func (s *service) about(e machine.CallExtender) *extenderv1.ExtenderArgs {
	args := &extenderv1.ExtenderArgs{Pod: e.Pod.API}
	if s.config.NodeCacheCapable {
		names := make([]string, len(e.Nodes))
		for i, n := range e.Nodes {
			names[i] = n.Name
		}
		args.NodeNames = &names
		return args
	}
	args.Nodes = &v1.NodeList{Items: make([]v1.Node, 0, len(e.Nodes))}
	for _, n := range e.Nodes {
		args.Nodes.Items = append(args.Nodes.Items, *n.API)
	}
	return args
}

func (s *service) preempt(ctx context.Context, e machine.CallExtender) ([]machine.NodeVictims, error) {
	var reply extenderv1.ExtenderPreemptionResult
	if err := s.send(ctx, s.verb(e.Verb), s.candidates(e), &reply, len(e.Candidates)); err != nil {
		return nil, err
	}
	left, err := left(&reply)
	if err != nil {
		return nil, s.bad(e.Verb, err)
	}
	return left, nil
}

// candidates is a question about victims: by UID where the extender knows the
// pods itself.
func (s *service) candidates(e machine.CallExtender) *extenderv1.ExtenderPreemptionArgs {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: e.Pod.API}
	if s.config.NodeCacheCapable {
		args.NodeNameToMetaVictims = map[string]*extenderv1.MetaVictims{}
		for _, c := range e.Candidates {
			args.NodeNameToMetaVictims[c.Node] = meta(c)
		}
		return args
	}
	args.NodeNameToVictims = map[string]*extenderv1.Victims{}
	for _, c := range e.Candidates {
		victims := &extenderv1.Victims{Pods: []*v1.Pod{}, NumPDBViolations: int64(c.NumPDBViolations)}
		for _, p := range c.Victims {
			victims.Pods = append(victims.Pods, p.API)
		}
		args.NodeNameToVictims[c.Node] = victims
	}
	return args
}

func meta(c framework.Candidate) *extenderv1.MetaVictims {
	victims := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}, NumPDBViolations: int64(c.NumPDBViolations)}
	for _, p := range c.Victims {
		victims.Pods = append(victims.Pods, &extenderv1.MetaPod{UID: string(p.UID)})
	}
	return victims
}

// Bind has the extender bind the pod and says what is known afterwards: refused
// is what the extender says no to, or never heard of.
func (x Extenders) Bind(ctx context.Context, e machine.BindByExtender, held func() bool) (machine.BindResult, error) {
	s := x[e.Extender]
	select {
	case s.binds <- struct{}{}:
		defer func() { <-s.binds }()
	case <-ctx.Done():
		return machine.BindRefused, ctx.Err()
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	var reply extenderv1.ExtenderBindingResult
	err := s.sendWhile(ctx, held, s.config.BindVerb, &extenderv1.ExtenderBindingArgs{
		PodName: e.Pod.Name, PodNamespace: e.Pod.Namespace, PodUID: e.Pod.UID, Node: e.Node,
	}, &reply, 1)
	var code *statusError
	switch {
	case err == nil && reply.Error == "":
		return machine.BindDone, nil
	case err == nil:
		return machine.BindRefused, errors.New(reply.Error)
	case errors.As(err, &code), !connected.Load(), errors.Is(err, fence.ErrNotLeading):
		return machine.BindRefused, err
	}
	return machine.BindUnknown, err
}

// statusError is a reply whose status is not 200, in kube-scheduler's words.
type statusError struct {
	verb, url string
	code      int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("failed %v with extender at URL %v, code %v", e.verb, e.url, e.code)
}

// send posts the question, whether or not the lease is held, and reads the reply.
func (s *service) send(ctx context.Context, verb string, question, reply any, nodes int) error {
	return s.sendWhile(ctx, func() bool { return true }, verb, question, reply, nodes)
}

// sendWhile posts the question, only while held returns true, and reads the reply. nodes
// is the number of nodes in the question; it bounds the size of the reply.
func (s *service) sendWhile(ctx context.Context, held func() bool, verb string, question, reply any, nodes int) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("extender %q: %s: %w", s.Name, verb, err)
	}
	limit := int64(replyBase + replyPerNode*nodes + 2*len(body))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url(verb), bytes.NewReader(body))
	if err != nil { // which repeats the address, with a password that is in it
		return fmt.Errorf("extender %q: %s: urlPrefix is not a URL", s.Name, verb)
	}
	req.Body = fence.Body(req.Body, held)
	req.GetBody = func() (io.ReadCloser, error) { return fence.Body(io.NopCloser(bytes.NewReader(body)), held), nil }
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return &statusError{verb, redacted(s.url(verb)), resp.StatusCode}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return fmt.Errorf("extender %q: %s: reading the reply: %w", s.Name, verb, err)
	case int64(len(data)) > limit:
		return fmt.Errorf("extender %q: %s: the reply is larger than %d bytes", s.Name, verb, limit)
	case bytes.Equal(bytes.TrimSpace(data), []byte("null")):
		return fmt.Errorf("extender %q: %s: the reply is null", s.Name, verb)
	}
	if err := json.Unmarshal(data, reply); err != nil {
		return fmt.Errorf("extender %q: %s: the reply cannot be decoded: %w", s.Name, verb, err)
	}
	return nil
}
