package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/why"
)

// ask has the daemon answer.
func (q *whyOptions) ask(ctx context.Context, args []string, stdout io.Writer) error {
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
	what, question := "why/all", url.Values{"output": {form}}
	if !q.all {
		what = "why"
		question.Set("pod", qualified(args[0], q.api.namespace()))
	}
	header, body, err := d.ask(ctx, what, question)
	switch {
	case err != nil && !q.all:
		return elsewhere(err, args[0], q.api.given())
	case err != nil:
		return err
	}
	status, err := q.statusOf(header, body)
	if err != nil {
		return err
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

// statusOf is the exit status of an answer: nil for 0. A text tells it in a header.
func (q *whyOptions) statusOf(header http.Header, body []byte) (status, err error) {
	var said struct {
		Verdict why.PodState
		Pending int
	}
	switch {
	case (q.output == "json" || q.output == "yaml") && q.all:
		err = decodeAnswer(body, "WhyAll", &said)
	case q.output == "json" || q.output == "yaml":
		err = decodeAnswer(body, "Why", &said)
	case q.all:
		if said.Pending, err = strconv.Atoi(header.Get(api.PendingHeader)); err != nil {
			err = fmt.Errorf("the daemon's answer: %w: it has no header %s", errNotBerth, api.PendingHeader)
		}
	default:
		if said.Verdict = why.PodState(header.Get(api.VerdictHeader)); said.Verdict == "" {
			err = fmt.Errorf("the daemon's answer: %w: it has no header %s", errNotBerth, api.VerdictHeader)
		}
	}
	if q.all {
		return statusOfAll(said.Pending), err
	}
	return statusOf(said.Verdict), err
}
