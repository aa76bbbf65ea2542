package fix

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-scheduler/berth/core/object"
)

// kind is a kind of fix. The order breaks ties between fixes of one size.
type kind int

const (
	undoRollout kind = iota
	releasePod       // that is terminating
	correctName      // something similar was meant
	lowerRequest
	addToleration
	narrowSpread
	loosenTerm
	changePort
	raiseSkew
	removeGate
	changeNode
	takeBack // a resize
	deletePod
	addNode
	changeClaim // for a volume or devices, or its class
	makeMissing
	raisePriority
	addLarger // a node larger than any pool has
)

// stage orders fixes before their size does.
type stage int8

const (
	undoes     stage = iota - 1 // takes back a leftover: a rollout, a cordon, a taint of a few nodes of a pool, a deferred resize, what holds a terminating pod
	usual                       // all others
	elsewhere                   // takes the pod to nodes that it does not choose, though there are some that it chooses
	lastResort                  // gives up a device, uses the control plane, or says of a node what it is not
)

// edit is the least that can be done: one operation on one object, or an object
// that goes or comes.
type edit struct {
	kind  kind
	stage stage
	// target is what ops change, or the zero value for the pod.
	target target
	// ops are one operation that counts, and those that keep the object valid.
	ops []Op
	// remove is a pod that goes.
	remove *object.Pod
	// create is an object that comes.
	create *creation
	// say is the edit in words.
	say string
	// tune finds the best value of an edit that has one.
	tune *tune
}

// target is an object that is changed.
type target struct{ apiVersion, kind, namespace, name string }

// tune is the value of an edit. It is as good as can be when a step further, the
// pod is not placed.
type tune struct {
	// value stands for now, and best is what it would be without a need.
	value, best, step int64
	// with is the edit with another value.
	with func(int64) edit
}

// render writes the operations on a document: what adds to something that is not there
// adds that, too.
func render(doc any, ops []Op) []Op {
	ops = inOrder(ops)
	first := slices.IndexFunc(ops, func(op Op) bool { return op.Op == "remove" })
	if first < 0 {
		return withParents(doc, ops)
	}
	return append(withParents(doc, ops[:first]), ops[first:]...)
}

// comparePaths orders paths so that members of lists stand by position.
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, "/")
		y, b, _ = strings.Cut(b, "/")
		order := strings.Compare(x, y)
		if isNumber(x) && isNumber(y) {
			order = cmp.Or(cmp.Compare(len(x), len(y)), order)
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

// isNumber reports whether the part of a path is a position in a list.
func isNumber(part string) bool {
	return strings.TrimLeft(part, "0123456789") == "" && part != ""
}

// withParents makes one operation of all that add below the same missing member.
func withParents(doc any, ops []Op) (out []Op) {
	at := map[string]int{}
	for _, op := range ops {
		missing, below := missingIn(doc, op.Path)
		if op.Op != "add" || len(below) == 0 {
			out = append(out, op)
			continue
		}
		i, known := at[missing]
		if !known {
			i = len(out)
			at[missing] = i
			out = append(out, Op{Op: "add", Path: missing})
		}
		out[i].Value = graft(out[i].Value, below, op.Value)
	}
	return out
}

// missingIn splits the path where the document ends: the first member that is not
// there, and what is below it.
func missingIn(doc any, path string) (missing string, below []string) {
	parts := strings.Split(path, "/")[1:]
	for i, part := range parts[:len(parts)-1] {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[unescape(part)]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n >= len(d) {
				return path, nil
			}
			doc = d[n]
		}
		if doc == nil {
			return "/" + strings.Join(parts[:i+1], "/"), parts[i+1:]
		}
	}
	return path, nil
}

// graft adds a value at a path below a value that is being made.
func graft(into any, below []string, value any) any {
	if len(below) == 0 {
		return value
	}
	if below[0] == "-" {
		list, _ := into.([]any)
		return append(list, value)
	}
	m, _ := into.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	m[unescape(below[0])] = graft(m[unescape(below[0])], below[1:], value)
	return m
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// escape makes a name a part of a path.
func escape(s string) string { return escaper.Replace(s) }

func unescape(s string) string { return unescaper.Replace(s) }

// MarshalJSON writes a value wherever an operation has one.
func (o Op) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	type plain struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	return json.Marshal(plain(o))
}

// at formats a path.
func at(format string, args ...any) string { return fmt.Sprintf(format, args...) }
