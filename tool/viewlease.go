package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// outage is what the API server says, with the rights of the user, while the scheduler gives no
// answer or does not lead.
type outage struct {
	lease   *LeaseStatus // nil: it is not known
	unread  string       // why something is not known
	pods    string       // that have no node
	started time.Time    // the daemon that does not lead; zero: that is not known
}

// unheard is the reason of the problem that a scheduler gives no answer.
const unheard = "SchedulerUnheard"

// outagePause is the least time from one reading of an outage to the next, and outageTime bounds one.
const (
	outagePause = 2 * time.Second
	outageTime  = 5 * time.Second
)

// mostWaiting bounds the pods without a node that are counted.
const mostWaiting = 500

// learn returns what was read last of an outage, nil before anything was. It begins to read anew, and
// does not wait for that: no question may take longer for it.
func (l *finder) learn(way *daemon) *outage {
	l.learning.Lock()
	defer l.learning.Unlock()
	if !l.reading && time.Since(l.learned) >= outagePause {
		l.reading = true
		if time.Since(l.learned) > 2*outageTime {
			l.outage = nil // of an outage before
		}
		go func() {
			o := l.readOutage(way)
			l.learning.Lock()
			defer l.learning.Unlock()
			l.outage, l.learned, l.reading = o, time.Now(), false
		}()
	}
	return l.outage
}

// readOutage reads the lease and counts the pods that have no node. It asks the daemon since when it runs, unless
// there is no way to it.
func (l *finder) readOutage(way *daemon) *outage {
	ctx, cancel := context.WithTimeoutCause(l.ctx, outageTime, errSilent)
	defer cancel()
	o := &outage{}
	config, err := l.flags.api.config()
	if err != nil {
		o.unread = sentence(err)
		return o
	}
	clock := &apiClock{}
	to := rest.CopyConfig(config)
	to.Wrap(untrusted.Answers(mostAnswer))
	to.Wrap(clock.watch)
	var unread []string
	if o.lease, err = readLease(ctx, to, l.flags.lease, clock); err != nil {
		unread = append(unread, "the lease could not be read: "+sentence(cmp.Or(silence(ctx), err)))
	}
	if o.pods, err = withoutNode(ctx, to); err != nil {
		unread = append(unread, "the pods could not be counted: "+sentence(cmp.Or(silence(ctx), err)))
	}
	o.unread = strings.Join(unread, "; ")
	if status := (api.Status{}); way != nil && way.get(ctx, "status", nil, "Status", &status) == nil {
		o.started = status.Started
	}
	return o
}

// readLease returns the lease of a scheduler that was renewed last, nil if there is none.
func readLease(ctx context.Context, config *rest.Config, lease string, clock *apiClock) (*LeaseStatus, error) {
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	leases, err := schedulersLeases(ctx, client, lease)
	if err != nil {
		return nil, err
	}
	if leases = thatCount(ctx, config, leases, ""); len(leases) == 0 {
		return nil, nil
	}
	return leaseStatus(leases[0], clock.now()), nil
}

// withoutNode says how many pods have no node.
func withoutNode(ctx context.Context, config *rest.Config) (string, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return "", err
	}
	list, err := client.Resource(v1.SchemeGroupVersion.WithResource("pods")).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=,status.phase=Pending", Limit: mostWaiting})
	switch {
	case err != nil:
		return "", err
	case list.Continue != "":
		return fmt.Sprintf("more than %d pods have no node", len(list.Items)), nil
	case len(list.Items) == 1:
		return "1 pod has no node", nil
	}
	return fmt.Sprintf("%d pods have no node", len(list.Items)), nil
}

// clauses returns the parts as one sentence, without those that are empty.
func clauses(parts ...string) string {
	var known []string
	for _, p := range parts {
		if p != "" {
			known = append(known, p)
		}
	}
	return strings.Join(known, "; ")
}

// unheard says how it stands while nobody answers, and what to do.
func (o *outage) unheard() string {
	if o.lease == nil {
		return clauses(o.pods, o.unread)
	}
	l := o.lease
	held, do := l.renewal(), "by its lease it works: what leads to its port hangs, or its port"
	switch left := l.left(); {
	case l.Holder == "":
		held, do = "nobody holds the lease "+l.Name, "start a scheduler"
	case left <= 0:
		held += ", and nobody took it since it ended " + ageText(-left.Seconds()) + " ago"
		do = "the scheduler hangs or is gone: restart it"
	case l.delay() != "":
		do = fmt.Sprintf("if that one is gone, another replica takes the lease in up to %s; if there is none, restart the scheduler", ageText(left.Seconds()))
	}
	return clauses(held, o.pods, o.unread, do)
}

// left returns how long the lease is valid yet.
func (l *LeaseStatus) left() time.Duration {
	return time.Duration((float64(l.ValidSeconds) - l.RenewedSeconds) * float64(time.Second))
}

// renewal says who holds the lease, and when it was renewed.
func (l *LeaseStatus) renewal() string {
	return fmt.Sprintf("%s holds the lease %s, last renewed %s ago", l.Holder, l.Name, ageText(l.RenewedSeconds))
}

// waits says what a daemon that does not lead waits for.
func (o *outage) waits() string {
	if o.lease == nil || o.lease.Holder == "" {
		return ""
	}
	l, started := o.lease, ""
	held := l.renewal()
	switch left := l.left(); {
	case left <= 0:
		held = fmt.Sprintf("it waits for the lease of %s, which ended %s ago", l.Holder, ageText(-left.Seconds()))
	case l.RenewedSeconds > float64(l.ValidSeconds)/3: // one that is well renews more often
		held = fmt.Sprintf("it waits for the lease of %s, which was last renewed %s ago (up to %s more)", l.Holder, ageText(l.RenewedSeconds), ageText(left.Seconds()))
	}
	if !o.started.IsZero() {
		started = "this daemon started at " + o.started.UTC().Format(time.RFC3339)
	}
	return clauses(held, started, l.changes(manyHolders))
}

// explained adds to the error of a scheduler that gives no answer what is known of it.
func (l *finder) explained(err error) error {
	var u *unserved
	if !errors.As(err, &u) && !errors.Is(err, errSilent) {
		return err
	}
	text := ""
	if o := l.learn(nil); o != nil {
		text = o.unheard()
	}
	return page.Problem(http.StatusBadGateway, unheard, clauses(sentence(err), text))
}

// explainLead adds to the refusal of a daemon that does not lead what it waits for.
func (l *finder) explainLead(way *daemon, reply *http.Response) {
	body, err := io.ReadAll(io.LimitReader(reply.Body, mostRefusal))
	_ = reply.Body.Close()
	var p api.Problem
	if err == nil && json.Unmarshal(body, &p) == nil && p.Reason == api.NotLeading {
		if o := l.learn(way); o != nil {
			if waits := o.waits(); waits != "" {
				p.Message = "this daemon does not lead: " + waits
			}
			body, _ = json.Marshal(&p) // a problem always encodes
		}
	}
	reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	reply.Header.Set("Content-Length", strconv.Itoa(len(body)))
}
