package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// Bounds of what a file holds about single pods, nodes and groups.
const (
	mostExportedPods   = 200
	mostExportedNodes  = 1000
	mostExportedGroups = 200
)

// exportLabels are the labels of nodes by which the page groups them.
const exportLabels = "karpenter.sh/nodepool,cloud.google.com/gke-nodepool,eks.amazonaws.com/nodegroup,kubernetes.azure.com/agentpool,pool,node.kubernetes.io/instance-type"

// exported returns what the page of one file holds of the data. What the daemon does not answer is
// left out, but not the nodes.
func exported(ctx context.Context, data page.Data, isRecord bool) (*page.Exported, error) {
	e := &page.Exported{Route: "#/", Answers: map[string]json.RawMessage{}, About: map[string]map[string]json.RawMessage{"why": {}, "node": {}, "group": {}}}
	questions := map[string]map[string][]string{"capabilities": nil, "summary": nil, "history": nil, "nodes": {"labels": {exportLabels}}, "pending": {"limit": {"10000"}}, "groups": {"limit": {"10000"}}, "quotas": {"limit": {"10000"}}, "shadow": nil, "records": {"limit": {"2000"}}}
	if isRecord {
		e.Route, questions["replay"], questions["compare"] = "#/replay", nil, nil
	}
	for what, query := range questions { // any order: each by itself
		body, err := answerOf(ctx, data, what, query)
		if err == nil {
			e.Answers[what] = body
		} else if what == "nodes" || what == "capabilities" {
			return nil, err
		}
	}
	var pending, others api.PendingList
	if body, err := answerOf(ctx, data, "pending", map[string][]string{"place": {"other scheduler"}, "limit": {"10000"}}); err == nil { // an older daemon knows no such place
		e.Answers["others"] = body
		_ = json.Unmarshal(body, &others)
	}
	var nodes api.NodeTable
	_ = json.Unmarshal(e.Answers["pending"], &pending) // none, if it was left out
	if err := json.Unmarshal(e.Answers["nodes"], &nodes); err != nil {
		return nil, err
	}
	pods := append(pending.Pods[:min(len(pending.Pods), mostExportedPods)], others.Pods...)
	for _, p := range pods[:min(len(pods), mostExportedPods)] {
		if body, err := answerOf(ctx, data, "why", map[string][]string{"pod": {p.Pod}}); err == nil {
			e.About["why"][p.Pod] = body
		}
	}
	var groups api.GroupList
	_ = json.Unmarshal(e.Answers["groups"], &groups)
	for _, g := range groups.Groups[:min(len(groups.Groups), mostExportedGroups)] {
		if body, err := answerOf(ctx, data, "group", map[string][]string{"name": {g.Group}}); err == nil {
			e.About["group"][g.Group] = body
		}
	}
	for _, name := range nodes.Names[:min(len(nodes.Names), mostExportedNodes)] {
		if body, err := answerOf(ctx, data, "node", map[string][]string{"name": {name}}); err == nil {
			e.About["node"][name] = body
		}
	}
	return e, ctx.Err()
}

// answerOf returns the body of an answer, or the problem that it is.
func answerOf(ctx context.Context, data page.Data, what string, query map[string][]string) ([]byte, error) {
	reply, err := data(ctx, what, query, http.Header{})
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := untrusted.All(reply.Body, mostAnswer)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode == http.StatusOK {
		return body, nil
	}
	p := &api.Problem{Code: reply.StatusCode, Message: reply.Status}
	_ = json.Unmarshal(body, p) // it may be no Problem
	return nil, p
}

// writeExport writes the data as a page of one file. redacted: its names are.
func (v *viewing) writeExport(ctx context.Context, data page.Data, redacted bool) error {
	e, err := exported(ctx, data, v.record != "")
	if err != nil {
		return err
	}
	e.Redacted = redacted
	return writeExported(v.export, e)
}

// writeExported writes a page of one file.
func writeExported(path string, e *page.Exported) error {
	var out bytes.Buffer
	if err := page.Export(&out, e); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600) // who may read it is its writer's to say
}

// htmlUsage is that of --html.
const htmlUsage = "write the answer to this file, too, as a page that stands alone"

// writeHTML writes the answer of a command as a page of one file.
func writeHTML(path, what string, answer []byte) error {
	if err := writeExported(path, &page.Exported{Route: "#/" + what, Answers: map[string]json.RawMessage{what: answer}}); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

// redactor returns what replaces names, by a key that is drawn and stored nowhere.
func redactor() *recording.Names { return recording.NewNames([]byte(rand.Text())) }

// unasked returns an error about a flag that says which scheduler to ask, where none is asked.
func (v *viewing) unasked(f *pflag.FlagSet) error {
	if !v.redact {
		return nil
	}
	return given(f, "has no effect with --redact, which reads the cluster from the API server", "daemon", "daemon-ca", "insecure-skip-tls-verify", "lease")
}

// checkExport returns an error about flags of an export.
func (v *viewing) checkExport() error {
	switch {
	case v.redact && v.export == "":
		return errors.New("--redact: needs --export")
	case v.redact && v.record != "":
		return errors.New("--redact: a record is redacted where it is made, by \"berth-scheduler --record-redact\"")
	}
	return nil
}
