package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// ask prints the daemon's answer. About workloads it adds what the API server says of them.
func (q *whyOptions) ask(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	q.daemon.api = q.api
	d, err := q.daemon.dial(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	form := q.output
	if form == "yaml" {
		form = "json"
	}
	what, question := q.question(args, form)
	header, body, err := d.ask(ctx, what, question)
	switch {
	case err != nil && what == "why":
		return q.unknownPod(ctx, err, args[0])
	case err != nil:
		return err
	}
	status, err := q.statusOf(what == "why", header, body)
	if err != nil {
		return err
	}
	if what != "why" {
		l, err := q.unmade(ctx, args, status == nil, stderr)
		if err != nil {
			return err
		}
		if l != nil {
			if body, err = withUnmade(body, l, form != "json"); err != nil {
				return err
			}
			if len(l.Missing) > 0 {
				status = statusOfAll(len(l.Missing))
			}
		}
	}
	if q.output == "yaml" {
		if body, err = terminal.YAML(body); err != nil {
			return err
		}
	}
	if _, err := stdout.Write(body); err != nil {
		return err
	}
	return status
}

// unknownPod returns the error that there is no such pod, with what may be meant by the name
// instead: what the API server has in its namespace, if the caller may read that.
func (q *whyOptions) unknownPod(ctx context.Context, said error, name string) error {
	var p *api.Problem
	if !errors.As(said, &p) || p.Reason != api.NotFound {
		return said
	}
	ctx, cancel := context.WithTimeout(ctx, mostUnmadeTime)
	defer cancel()
	namespace := q.api.namespace()
	if in, _, qualified := strings.Cut(name, "/"); qualified {
		namespace = in
	}
	c := &why.Cluster{Set: manifest.NewSet(), Namespace: namespace}
	if err := q.addKinds(ctx, c.Set, slices.Concat(makers, kindsNamed("Pod")), namespace); err == nil {
		if meant := c.Meant(name, q.api.given()); meant != "" {
			return fmt.Errorf("%w; %s", said, meant)
		}
	}
	if q.api.given() != "" || strings.Contains(name, "/") {
		return said
	}
	return fmt.Errorf("%w; if it is in another namespace, give NAMESPACE/%s", said, name)
}

// question is the path and the parameters of what is asked.
func (q *whyOptions) question(args []string, form string) (what string, question url.Values) {
	question = url.Values{"output": {form}}
	set := func(name, value string) {
		if value != "" {
			question.Set(name, value)
		}
	}
	namespace := q.api.namespace()
	switch {
	case q.all:
		set("namespace", q.api.given())
		set("selector", q.selector)
	case isWorkload(args[0]):
		set("namespace", namespace)
		set("workload", args[0])
	default:
		question.Set("pod", qualified(args[0], namespace))
		return "why", question
	}
	if form == "json" {
		question.Set("kind", "WhyList")
	}
	return "why/all", question
}

// statusOf is the exit status of an answer about one pod or about several: nil for 0. A text
// tells it in a header.
func (q *whyOptions) statusOf(one bool, header http.Header, body []byte) (status, err error) {
	var said struct {
		Verdict    why.PodState
		Observed   *why.Observed
		GroupCause *why.Cause
		Pods       int
	}
	switch {
	case (q.output == "json" || q.output == "yaml") && !one:
		err = decodeAnswer(body, "WhyList", &said)
	case q.output == "json" || q.output == "yaml":
		err = decodeAnswer(body, "Why", &said)
	case !one:
		if said.Pods, err = strconv.Atoi(header.Get(api.PendingHeader)); err != nil {
			err = fmt.Errorf("the daemon's answer: %w: it has no header %s", errNotBerth, api.PendingHeader)
		}
	default:
		if said.Verdict = why.PodState(header.Get(api.VerdictHeader)); said.Verdict == "" {
			err = fmt.Errorf("the daemon's answer: %w: it has no header %s", errNotBerth, api.VerdictHeader)
		}
	}
	if !one {
		return statusOfAll(said.Pods), err
	}
	group := why.Answer{Verdict: said.Verdict, GroupCause: said.GroupCause}
	disagrees := group.WaitsForGroup() || said.Observed != nil && !said.Observed.Agrees || header.Get(api.DisagreesHeader) == "true"
	return statusOf(said.Verdict, disagrees), err
}
