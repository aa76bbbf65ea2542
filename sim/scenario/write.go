package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// WriteNode returns the directive that creates the node: a line of attributes if they
// express everything that a scheduler reads of it, else its YAML.
func WriteNode(n *v1.Node) string {
	words, err := splitLine(nodeLine(n))
	if err == nil {
		said := newNode(words[1])
		if applyAll(words[2:], func(a attribute) error { return setNode(said, a) }) == nil && reflect.DeepEqual(seenNode(said), seenNode(n)) {
			return nodeLine(n) + "\n"
		}
	}
	return WriteObject(n)
}

// WritePod returns the directive that creates the pod: a line of attributes if they
// express everything that a scheduler reads of it, else its YAML.
func WritePod(p *v1.Pod) string {
	words, err := splitLine(podLine(p))
	if err == nil {
		said := newPod(words[1])
		if applyAll(words[2:], func(a attribute) error { return setPod(said, a) }) == nil && reflect.DeepEqual(seenPod(said), seenPod(p)) {
			return podLine(p) + "\n"
		}
	}
	return WriteObject(p)
}

// WriteObject returns the directive that creates or replaces the object, which
// has its kind, written as YAML.
func WriteObject(o any) string {
	text, err := yaml.Marshal(pruned(o))
	if err != nil {
		panic("an API object is YAML: " + err.Error())
	}
	return "object\n" + Block(string(text))
}

// Block indents the text, so that it belongs to the directive before it.
func Block(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		b.WriteString("  " + line)
	}
	return b.String() + "\n"
}

// splitLine reads a line as a story would.
func splitLine(line string) ([]string, error) {
	if strings.ContainsAny(line, "#\n\t") {
		return nil, fmt.Errorf("a line cannot hold this")
	}
	words, err := split(line)
	if err == nil && len(words) < 2 {
		err = fmt.Errorf("there is no name")
	}
	return words, err
}

func applyAll(words []string, apply func(attribute) error) error {
	for _, w := range words {
		if err := apply(parseAttribute(w)); err != nil {
			return err
		}
	}
	return nil
}

// seenNode is the node as a scheduler sees it, whatever its UID.
func seenNode(n *v1.Node) *object.Node {
	n = n.DeepCopy()
	n.UID = ""
	decode.DefaultNode(n)
	return decode.Node(n)
}

// seenPod is the pod as a scheduler sees it, whatever its UID and age: what
// counts is when a pod comes in a story.
func seenPod(p *v1.Pod) *object.Pod {
	p = p.DeepCopy()
	p.UID = ""
	decode.DefaultPod(p)
	if err := (&decode.PriorityClasses{}).Resolve(p); err != nil {
		return nil
	}
	seen := decode.Pod(p)
	seen.Created, seen.Started = time.Time{}, seen.Started.UTC()
	if seen.Claiming != nil {
		seen.Claiming = reread(seen.Claiming)
	}
	return seen
}

// reread is the pod as its JSON is read: equal amounts are equal then.
func reread(p *v1.Pod) *v1.Pod {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("an API object is JSON: " + err.Error())
	}
	again := &v1.Pod{}
	if err := json.Unmarshal(raw, again); err != nil {
		panic("JSON is JSON: " + err.Error())
	}
	return again
}

// pruned is the object as plain values, without the parts of a node that are
// always written and say nothing.
func pruned(o any) any {
	raw, err := json.Marshal(o)
	if err != nil {
		panic("an API object is JSON: " + err.Error())
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		panic("JSON is JSON: " + err.Error())
	}
	if n, ok := o.(*v1.Node); ok {
		status, _ := tree["status"].(map[string]any)
		delete(status, "daemonEndpoints")
		if n.Status.NodeInfo == (v1.NodeSystemInfo{}) {
			delete(status, "nodeInfo")
		}
	}
	return tree
}
