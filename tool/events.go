package tool

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// eventsCall is what the flags of `berth events` say.
type eventsCall struct {
	daemonFlags
	node, reason string
	since        string
	follow       bool
	limit        int
	output       string
}

const eventsLong = `Show what happened to a pod in the scheduler: when it was taken for an attempt and
what came of it, when it was sent back, until when it backs off, which event
requeued it, when it was bound or evicted.

The scheduler keeps these records in its memory (--records-memory); the oldest go
first, except for the last attempt of each pod that waits. Without a pod, --node,
--reason or --since says which records are shown.

Exit status: 0, or 2 if there is no such pod or the call is not valid.`

const eventsExamples = `  # What happened to a pod?
  %[1]s events web-5d8f7c-x2v

  # And go on showing it
  %[1]s events -n shop cart-0 --follow

  # What was placed on, evicted from or nominated to a node in the last ten minutes?
  %[1]s events --node node-17 --since 10m

  # Every rejection for lack of CPU, as JSON
  %[1]s events --reason "Insufficient cpu" -o json

  # A scheduler outside the cluster
  %[1]s events cart-0 --daemon https://10.0.0.5:10259 --daemon-ca ca.crt`

func newEvents(name string) *cobra.Command {
	e := eventsCall{daemonFlags: daemonFlags{url: auto, always: true}}
	cmd := &cobra.Command{
		Use:     "events [[NAMESPACE/]POD]",
		Short:   "Show what happened to a pod in the scheduler",
		Long:    eventsLong,
		Example: fmt.Sprintf(eventsExamples, name),
		Args:    onePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			args = plainPods(args)
			if err := cmp.Or(e.checkFlags(cmd.Flags()), e.useless(cmd.Flags(), args)); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			said, _ := e.explained(cmd.Context(), e.run(ctx, args, cmd.OutOrStdout(), cmd.ErrOrStderr()))
			return said
		},
	}
	f := cmd.Flags()
	e.addFlags(f)
	e.addKubeconfig(f)
	e.api.addNamespace(cmd, "namespace of the pod; default: that of the context")
	f.StringVar(&e.node, "node", "", "only records about this node")
	f.StringVar(&e.reason, "reason", "", "only records with this in a reason, plugin, result, event or type")
	f.StringVar(&e.since, "since", "", "only records since a time (2026-01-31T12:00:00Z) or for so long (10m)")
	f.BoolVar(&e.follow, "follow", false, "go on showing what happens")
	f.IntVar(&e.limit, "limit", 500, "show at most this many records, the newest")
	addOutput(cmd, &e.output, " (a record a line)", "text", "json")
	cmd.ValidArgsFunction = onlyFirst(e.api.pods())
	e.api.completeFlags(cmd)
	return cmd
}

// onePod allows a pod.
func onePod(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("unexpected argument %q; give one pod", args[1])
	}
	return nil
}

// useless tells of flags that the others leave nothing to say.
func (e *eventsCall) useless(f *pflag.FlagSet, args []string) error {
	switch {
	case e.follow && f.Changed("limit"):
		return errors.New("--limit: has no effect with --follow, which shows all; --since sets the start")
	case len(args) == 0:
		return given(f, "is that of a pod; name one", "namespace")
	case strings.Contains(args[0], "/"):
		return given(f, twoNamespaces(args[0]), "namespace")
	}
	return e.oneNamespace(f, true)
}

func (e *eventsCall) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	q, err := e.query(args)
	if err != nil {
		return err
	}
	d, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	p := &recordPrinter{out: bufio.NewWriter(stdout), json: e.output == "json", pods: q.Get("pod") == ""}
	if !e.follow {
		q.Set("limit", fmt.Sprint(e.limit))
		var list api.RecordList
		if err := d.get(ctx, "records", q, "RecordList", &list); err != nil {
			return err
		}
		if list.More {
			p.note("(there are older ones: --limit)")
		}
		for i := range list.Records {
			p.record(&list.Records[i])
		}
		if len(list.Records) == 0 {
			notes(stderr, []string{e.noRecord(args, q.Get("pod"))})
		}
		return p.out.Flush()
	}
	if q.Get("since") == "" {
		q.Set("since", "24h") // begin with what is there
	}
	return p.followAll(ctx, d, q)
}

// streamPause is the least time from one stream to the next: a daemon may end each at once.
const streamPause = time.Second

// followAll prints streams, one after the other, as the daemon ends each after a while.
func (p *recordPrinter) followAll(ctx context.Context, d *daemon, q url.Values) error {
	pause := time.NewTicker(streamPause)
	defer pause.Stop()
	for {
		err := p.follow(ctx, d, q)
		var end *api.Problem
		switch {
		case ctx.Err() != nil:
			return nil // an interrupt is how it is meant to end
		case !errors.As(err, &end) || end.Reason != api.Ended:
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// follow prints one stream until it ends.
func (p *recordPrinter) follow(ctx context.Context, d *daemon, q url.Values) error {
	body, err := d.watch(ctx, q, p.last)
	if err != nil {
		return err
	}
	defer body.Close()
	return p.stream(body)
}

// noRecord says that no record matches, and in which namespace the pod was looked for
// where the call named none.
func (e *eventsCall) noRecord(args []string, pod string) string {
	of := ""
	switch {
	case pod == "":
	case e.api.given() != "" || strings.Contains(args[0], "/"):
		of = " pod " + pod
	default:
		of = fmt.Sprintf(" pod %s; if it is in another namespace, give NAMESPACE/NAME", pod)
	}
	return fmt.Sprintf("no record matches%s; \"top\" says since when there are records", of)
}

func (e *eventsCall) query(args []string) (url.Values, error) {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(args) > 0 {
		if err := checkPod(args[0]); err != nil {
			return nil, err
		}
		set("pod", qualified(args[0], e.api.namespace()))
	}
	set("node", e.node)
	set("reason", e.reason)
	set("since", e.since)
	if len(q) == 0 {
		return nil, errors.New("which pod? give its name, or --node, --reason or --since")
	}
	return q, nil
}

// qualified is NAMESPACE/NAME.
func qualified(pod, namespace string) string {
	switch {
	case strings.Contains(pod, "/"):
		return pod
	case namespace == "":
		return "default/" + pod
	}
	return namespace + "/" + pod
}

// recordPrinter prints records, one a line.
type recordPrinter struct {
	out  *bufio.Writer
	json bool
	pods bool   // name them
	last string // the id of the newest event, after which the next stream goes on
}

func (p *recordPrinter) record(r *records.Record) {
	if p.json {
		body, err := json.Marshal(r)
		if err == nil {
			terminal.Fprintf(p.out, "%s\n", body)
		}
		return
	}
	pod := ""
	if p.pods {
		pod = " " + r.Pod
	}
	terminal.Fprintf(p.out, "%s%s %s\n", r.Time.Format("2006-01-02T15:04:05.000Z07:00"), pod, r.Text())
}

func (p *recordPrinter) note(text string) {
	if !p.json {
		terminal.Fprintf(p.out, "%s\n", text)
	}
}

// stream prints a stream of server-sent events until it ends.
func (p *recordPrinter) stream(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	kind := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			p.last = value
		case name == "event":
			kind = value
		case name == "data":
			if err := p.event(kind, []byte(value)); err != nil {
				return err
			}
		}
		if err := p.out.Flush(); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the stream broke off: %w", err)
	}
	return errors.New("the stream broke off")
}

func (p *recordPrinter) event(kind string, data []byte) error {
	switch kind {
	case "record":
		var r records.Record
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		p.record(&r)
	case "lost":
		var l api.Lost
		if err := json.Unmarshal(data, &l); err != nil {
			return err
		}
		if l.Restarted {
			p.note("(another scheduler leads from here on, or this one began anew)")
			return nil
		}
		p.note(fmt.Sprintf("%s (%d records were lost here: the stream is read too slowly)", time.Now().UTC().Format(time.TimeOnly), l.Lost))
	case "end":
		var end api.Problem
		if err := json.Unmarshal(data, &end); err != nil {
			return err
		}
		return &end
	}
	return nil
}
