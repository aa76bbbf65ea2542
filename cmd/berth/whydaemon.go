package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/why"
)

// checkDaemon says which flags make no sense where the daemon answers.
func (q *inquiry) checkDaemon() error {
	switch {
	case q.daemon.url == "":
		return nil
	case q.all:
		return errors.New("--all: the daemon answers about one pod; leave out --daemon, and the API server is read")
	case len(q.files) > 0:
		return errors.New("--daemon: the scheduler answers about its own cluster; leave out -f")
	case q.config != "":
		return errors.New("--daemon: the scheduler has a configuration; leave out --config")
	}
	return nil
}

// ask has the daemon answer.
func (q *inquiry) ask(ctx context.Context, pod string, stdout io.Writer) error {
	q.daemon.kubeconfig, q.daemon.context = q.kubeconfig, q.context
	d, err := q.daemon.dial(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	form := q.output
	if form == "yaml" {
		form = "json"
	}
	reply, err := d.open(ctx, "why", url.Values{"pod": {qualified(pod, q.namespace)}, "output": {form}})
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	verdict := why.Verdict(reply.Header.Get("Berth-Verdict"))
	if form == "json" {
		var a struct{ Verdict why.Verdict }
		if err := json.Unmarshal(body, &a); err != nil {
			return fmt.Errorf("the daemon's answer: %w", err)
		}
		verdict = a.Verdict
	}
	if q.output == "yaml" {
		if body, err = yaml.JSONToYAML(body); err != nil {
			return err
		}
	}
	if _, err := stdout.Write(body); err != nil {
		return err
	}
	return statusOf(verdict)
}
