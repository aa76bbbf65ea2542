package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/explain"
	"github.com/berth-scheduler/berth/core/par"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim"
)

// attempt is a decision as the contract writes it, in its order of fields.
type attempt struct {
	Pod           string   `json:"pod"`
	Profile       string   `json:"profile"`
	Attempt       int      `json:"attempt"`
	Result        string   `json:"result"`
	Node          string   `json:"node,omitempty"`
	NodesTotal    int      `json:"nodesTotal"`
	NodesFeasible int      `json:"nodesFeasible"`
	NominatedNode string   `json:"nominatedNode,omitempty"`
	Victims       []string `json:"victims,omitempty"`
	Message       string   `json:"message,omitempty"`
	Plugins       []string `json:"plugins,omitempty"`
}

type node struct {
	Node     string    `json:"node"`
	Feasible bool      `json:"feasible"`
	Score    *int64    `json:"score,omitempty"`
	Scores   []score   `json:"scores,omitempty"`
	Blockers []blocker `json:"blockers,omitempty"`
}

type score struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
	Weight int64  `json:"weight"`
}

type blocker struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

func newAttempt(d *decision.Decision) attempt {
	a := attempt{
		Pod: d.Pod.String(), Profile: d.Profile, Attempt: d.Attempt, Result: string(d.Result),
		NodesTotal: d.NodesTotal, NodesFeasible: d.NodesFeasible,
		Message: explain.Message(d), Plugins: rejectors(d),
	}
	switch d.Result {
	case decision.ResultScheduled, decision.ResultWaiting:
		a.Node = d.Node
	case decision.ResultPreempting:
		a.NominatedNode = d.NominatedNode
		for _, v := range d.Victims {
			a.Victims = append(a.Victims, v.String())
		}
	}
	return a
}

// newNode writes a score of 0 where nodes were scored and no plugin had a part
// in it.
func newNode(n *decision.Node, scored bool) node {
	out := node{Node: n.Name, Feasible: n.Feasible}
	for _, s := range n.Scores {
		out.Scores = append(out.Scores, score(s))
	}
	if len(n.Scores) > 0 || scored && n.Feasible {
		out.Score = &n.Total
	}
	for _, b := range n.Blockers {
		out.Blockers = append(out.Blockers, blocker{b.Plugin, b.Code.String(), append([]string{}, b.Reasons...)})
	}
	return out
}

// JSON writes the result as JSON while the run goes on: with every node
// explained, the decisions of a large cluster are more than memory holds.
type JSON struct {
	// Nodes is set to write each node before and after, in the result of a run with changes.
	Nodes   bool
	out     io.Writer
	workers int
	count   int
	err     error
}

// NewJSON begins the result. Answers of nodes are written on that many cores.
func NewJSON(out io.Writer, seed uint64, ignored map[string]int, workers int) *JSON {
	j := &JSON{out: out, workers: workers}
	j.write("{\n")
	j.field("apiVersion", why.APIVersion)
	j.head(seed, ignored)
	j.write("  \"decisions\": [")
	return j
}

func (j *JSON) head(seed uint64, ignored map[string]int) {
	j.field("kind", "SimulationResult")
	j.field("seed", seed)
	j.field("ignored", ignored)
}

// AttemptDone writes the next decision.
func (j *JSON) AttemptDone(d *decision.Decision) {
	if j.count++; j.count > 1 {
		j.write(",")
	}
	j.write("\n    ")
	j.decision(d)
}

func (j *JSON) decision(d *decision.Decision) {
	if len(d.Nodes) == 0 {
		j.value("    ", newAttempt(d))
		return
	}
	j.write(strings.TrimSuffix(j.text("    ", newAttempt(d)), "\n    }"))
	j.write(",\n      \"nodes\": [\n")
	j.nodes(d)
	j.write("      ]\n    }")
}

// nodes writes the answers of the nodes, one a line: they are many.
func (j *JSON) nodes(d *decision.Decision) {
	parts := make([]bytes.Buffer, (len(d.Nodes)+nodesTogether-1)/nodesTogether)
	par.Rows(len(parts), j.workers, 1, func(rows par.Range) {
		for i := rows.From; i < rows.To; i++ {
			part := &parts[i]
			enc := json.NewEncoder(part)
			enc.SetEscapeHTML(false)
			for at := i * nodesTogether; at < min((i+1)*nodesTogether, len(d.Nodes)); at++ {
				part.WriteString("        ")
				_ = enc.Encode(newNode(&d.Nodes[at], d.NodesFeasible > 1)) // such values always encode
				if at < len(d.Nodes)-1 {
					part.Truncate(part.Len() - 1)
					part.WriteString(",\n")
				}
			}
		}
	})
	for i := range parts {
		j.write(parts[i].String())
	}
}

// nodesTogether is how many nodes are worth a goroutine.
const nodesTogether = 256

// Finish ends the result and returns the first error in writing it.
func (j *JSON) Finish(r *sim.Result) error { return j.finish(r, evictedMember(r)...) }

// evictedMember returns the field with the pods that were evicted, none if there are none. The
// victims of a pod group stand nowhere else: they are of no pod's decision.
func evictedMember(r *sim.Result) []member {
	if len(r.Evicted) == 0 {
		return nil
	}
	return []member{{"evicted", evictions(r, nil)}}
}

// member is a field that a result of another command has beyond those of a
// simulation.
type member struct {
	name  string
	value any
}

func (j *JSON) finish(r *sim.Result, more ...member) error {
	if j.count > 0 {
		j.write("\n  ")
	}
	j.write("],\n")
	return j.tail(r, more...)
}

func (j *JSON) tail(r *sim.Result, more ...member) error {
	j.field("placements", r.Placed)
	j.write("  \"unplaced\": ")
	j.value("  ", r.Unplaced)
	for _, m := range more {
		j.write(",\n  \"" + m.name + "\": ")
		j.value("  ", m.value)
	}
	if r.Cut != "" {
		j.write(",\n  \"cut\": ")
		j.value("  ", r.Cut)
	}
	j.write("\n}\n")
	return j.err
}

func (j *JSON) field(name string, value any) {
	j.write("  \"" + name + "\": ")
	j.value("  ", value)
	j.write(",\n")
}

func (j *JSON) value(indent string, value any) { j.write(j.text(indent, value)) }

func (j *JSON) text(indent string, value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(indent, "  ")
	if err := enc.Encode(value); err != nil && j.err == nil {
		j.err = err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func (j *JSON) write(s string) {
	if j.err == nil {
		_, j.err = io.WriteString(j.out, s)
	}
}

// YAML is JSON in YAML's form, written while the run goes on, too: decision by decision.
type YAML struct {
	*JSON
	text    bytes.Buffer // JSON that is not written yet
	out     io.Writer
	seed    uint64
	ignored map[string]int
}

// NewYAML begins the result.
func NewYAML(out io.Writer, seed uint64, ignored map[string]int, workers int) *YAML {
	y := &YAML{out: out, seed: seed, ignored: ignored}
	y.JSON = &JSON{out: &y.text, workers: workers}
	y.write(`{"apiVersion": "` + why.APIVersion + `"}`)
	y.convert()
	return y
}

// AttemptDone writes the next decision.
func (y *YAML) AttemptDone(d *decision.Decision) {
	if y.count++; y.count == 1 {
		y.print([]byte("decisions:\n"))
	}
	y.write("[")
	y.decision(d)
	y.write("]")
	y.convert()
}

// Finish ends the result and returns the first error in writing it.
func (y *YAML) Finish(r *sim.Result) error { return y.finish(r, evictedMember(r)...) }

func (y *YAML) finish(r *sim.Result, more ...member) error {
	if y.count == 0 {
		y.print([]byte("decisions: []\n"))
	}
	y.write("{")
	y.head(y.seed, y.ignored)
	_ = y.tail(r, more...)
	y.convert()
	return y.err
}

// convert writes the text.
func (y *YAML) convert() {
	data, err := terminal.YAML(y.text.Bytes())
	if y.text.Reset(); err != nil && y.err == nil {
		y.err = err
	}
	y.print(data)
}

func (y *YAML) print(data []byte) {
	if y.err == nil {
		_, y.err = y.out.Write(data)
	}
}
