package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptrace"
	"net/url"
	"time"
)

// reachTime is how long a connection to a scheduler may take. A process that is stopped or hangs
// still has its port open, so that nothing refuses a connection to it. Tests set less.
var reachTime = 3 * time.Second

// errUnreached ends a request that gets no connection in time.
var errUnreached = errors.New("no connection came about in time")

// reach returns a context for a request that ends if the request has no connection after a while.
func reach(ctx context.Context, most time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(most, func() { cancel(errUnreached) })
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { late.Stop() }})
}

// unserved is the error of a scheduler that gives no answer, as it cannot be reached or does not
// lead.
type unserved struct {
	err  error
	gone bool // it cannot be reached where it should be
}

// Error is for error.
func (u *unserved) Error() string { return u.err.Error() }

// Unwrap is for errors.
func (u *unserved) Unwrap() error { return u.err }

// unasked returns the error of a request that ended with err and without an answer. One that got a
// connection was waited for long enough, so that nobody else is asked after it.
func (d *daemon) unasked(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause == errUnreached || cause == errSilent {
		err = cause
	}
	var at *url.Error
	var failed *net.OpError
	switch {
	case hint(err) != "":
		return fmt.Errorf("asking the daemon: %w%s", err, hint(err))
	case err == errUnreached:
	case errors.As(err, &at) && (at.Timeout() || errors.As(err, &failed) && (failed.Op == "dial" || failed.Op == "read")):
		err = at.Err
	default:
		return fmt.Errorf("asking the daemon: %w", err)
	}
	return &unserved{fmt.Errorf("the scheduler at %s does not answer: %w", d.base.Host, err), true}
}

// explained adds to the error of a scheduler that gives no answer what its lease says. down is set
// if nobody answers, or the lease says that something is wrong.
func (d *daemonFlags) explained(ctx context.Context, err error) (said error, down bool) {
	var u *unserved
	if !errors.As(err, &u) {
		return err, false
	}
	why := ""
	if config, unread := d.api.config(); unread == nil {
		config.Timeout = cmp.Or(config.Timeout, answerTimeout)
		said, note, _ := stalled(ctx, config, d.lease, "") // which `berth status` says more about
		why = cmp.Or(said, note)
	}
	down = u.gone || why != ""
	if why != "" {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return fmt.Errorf("%w; \"berth status\" says who leads", err), down
}
