package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/why"
	"github.com/berth-scheduler/berth/sim/whatif"
)

// asks returns the questions that the page posts. The commands of the same names answer them, in
// their JSON, and read the cluster for each.
func (v *viewing) asks() map[string]page.Ask {
	return map[string]page.Ask{"what-if": v.askWhatIf, "fit": v.askFit, "simulate": v.askSimulate}
}

// askWhatIf answers {"change": "drain node-1", "ignoreBudgets": false, "objects": "...", "nodes": false}.
// The objects are what the change "apply -" applies. With nodes the answer has more than the command's:
// each node before and after.
func (v *viewing) askWhatIf(ctx context.Context, question []byte) ([]byte, error) {
	var q struct {
		Change        string `json:"change"`
		IgnoreBudgets bool   `json:"ignoreBudgets"`
		Objects       string `json:"objects"`
		Nodes         bool   `json:"nodes"`
	}
	if err := strictly(question, &q); err != nil {
		return nil, err
	}
	words := strings.Fields(q.Change)
	changes, err := whatif.Parse(words)
	if err != nil {
		return nil, err
	}
	for i := range changes {
		if err := checkApplied(&changes[i]); err != nil {
			return nil, err
		}
	}
	s := supposition{source: v.source, output: "json", ignoreBudgets: q.IgnoreBudgets, nodes: q.Nodes, timeout: timeLimit{usualTime}}
	printed, err := printedBy(func(out io.Writer) error { return s.run(ctx, words, strings.NewReader(q.Objects), out, io.Discard) })
	if err != nil {
		return nil, err
	}
	var answer bytes.Buffer
	err = json.Compact(&answer, printed) // columns of nodes would have a line for each
	return answer.Bytes(), err
}

// checkApplied returns an error about a change that would read a file: a page names none.
func checkApplied(c *whatif.Change) error {
	for _, operand := range c.Operands {
		if c.Verb == "apply" && operand != "-" {
			return fmt.Errorf("apply %s: the page reads no files; give the objects and \"apply -\"", operand)
		}
	}
	return nil
}

// askFit answers {"pod": "", "scale": "", "nodesLike": [], "after": ""}, as the flags of the
// command are.
func (v *viewing) askFit(ctx context.Context, question []byte) ([]byte, error) {
	var q struct {
		Pod       string   `json:"pod"`
		Scale     string   `json:"scale"`
		NodesLike []string `json:"nodesLike"`
		After     string   `json:"after"`
	}
	if err := strictly(question, &q); err != nil {
		return nil, err
	}
	if q.Scale != "" && !namesWorkload(q.Scale) {
		return nil, fmt.Errorf("scale %s: must be [NAMESPACE/]KIND/NAME; the page reads no files", q.Scale)
	}
	after, err := whatif.Parse(strings.Fields(q.After))
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	for i := range after {
		if after[i].Verb == "apply" {
			return nil, errors.New("after: the page reads no files")
		}
	}
	s := fit{source: v.source, pod: q.Pod, scale: q.Scale, nodesLike: q.NodesLike, after: q.After, output: "json", timeout: timeLimit{usualTime}}
	return printedBy(func(out io.Writer) error { return s.run(ctx, strings.NewReader(""), out, io.Discard) })
}

// namesWorkload reports whether the text is [NAMESPACE/]KIND/NAME.
func namesWorkload(text string) bool {
	if _, _, ok := why.ParseWorkload(text); ok {
		return true
	}
	_, rest, _ := strings.Cut(text, "/")
	_, _, ok := why.ParseWorkload(rest)
	return ok
}

// askSimulate answers {"explain": false, "pods": []}, as the flags of the command are.
func (v *viewing) askSimulate(ctx context.Context, question []byte) ([]byte, error) {
	var q struct {
		Explain bool     `json:"explain"`
		Pods    []string `json:"pods"`
	}
	if err := strictly(question, &q); err != nil {
		return nil, err
	}
	s := simulation{source: v.source, explain: q.Explain, pods: q.Pods, views: true, output: "json", timeout: timeLimit{usualTime}}
	return printedBy(func(out io.Writer) error { return s.run(ctx, strings.NewReader(""), out, io.Discard) })
}

// strictly decodes a question, which has no other fields.
func strictly(question []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(question))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the question: %w", err)
	}
	return nil
}

// printedBy returns what a command prints. That a pod has no place is an answer, too.
func printedBy(run func(out io.Writer) error) ([]byte, error) {
	var out bytes.Buffer
	err := run(&out)
	var status exitStatus
	if err != nil && !errors.As(err, &status) {
		return nil, errors.New(sentence(err))
	}
	return out.Bytes(), nil
}
