package queue

import "github.com/berth-scheduler/berth/core/framework"

// Foresight answers one question about rejected pods: could this event help them? It knows
// more than a queueing hint, which sees one plugin's side of it. It answers once for all
// pods of a class. It may not call the queue, and not panic.
type Foresight interface {
	// AppendClass appends a key that is equal for pods of one class: if the same plugins
	// rejected them, neither hints nor CouldHelp can tell them apart. It appends nothing
	// for a pod without a class. The key may change only with the pod and its nomination.
	AppendClass(key []byte, e *Entry) []byte
	// CouldHelp reports whether the event could help an unschedulable pod, which a
	// queueing hint wants to move because of it.
	CouldHelp(e *Entry, event *framework.Event) bool
	// Size returns what an unschedulable pod needs at least of a node because of a
	// plugin that rejected it; plugin "" means that this is not known. It is known only
	// if no event about a node that is too small could help the pod, unless another
	// plugin's hint moves it. It may change only as the class does.
	Size(e *Entry) (plugin string, size Size)
	// TooLarge returns, for an event about a node, a test of sizes: the event cannot help
	// pods for whose size the test is true. A nil test excludes no pod.
	TooLarge(event *framework.Event) func(Size) bool
}

// Size is what a rejected pod needs at least of a node. It shows of most pods that an
// event about a node cannot help them, without a question about each: with 10,000 pods of
// 10,000 workloads waiting, such questions took 6 ms an event.
type Size struct {
	Priority         int32
	MilliCPU, Memory int64
}

// hintsAlone is the Foresight of a queue without one: each pod is a class of its own, and
// what hints say counts.
type hintsAlone struct{}

func (hintsAlone) AppendClass(key []byte, _ *Entry) []byte   { return key }
func (hintsAlone) CouldHelp(*Entry, *framework.Event) bool   { return true }
func (hintsAlone) Size(*Entry) (plugin string, size Size)    { return "", Size{} }
func (hintsAlone) TooLarge(*framework.Event) func(Size) bool { return nil }
