package scheduler

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/daemon"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// lookTime is the time between two looks at the configuration file.
const lookTime = 5 * time.Second

// watchedFile is the configuration file, and what is known of it.
type watchedFile struct {
	read    func() ([]byte, error)
	applied []byte // or refused
	seen    []byte // at the last look, if that is something else
	failed  string // why it could not be read at the last look
	said    string // the last of these reasons that was said
}

// look reads the file. It reports true with a text that is new, and counts that as applied, or
// with the reason why the file cannot be read, each reason once until it can be. Both must
// have been so at the last look, too: somebody may be writing the file.
func (f *watchedFile) look() (text []byte, changed bool, err error) {
	text, err = f.read()
	if err != nil {
		before := f.failed
		f.failed, f.seen = err.Error(), nil
		if f.failed != before || f.failed == f.said {
			return nil, false, nil
		}
		f.said = f.failed
		return nil, true, err
	}
	f.failed, f.said = "", ""
	switch {
	case bytes.Equal(text, f.applied):
		f.seen = nil
		return nil, false, nil
	case f.seen == nil || !bytes.Equal(text, f.seen):
		f.seen = text
		return nil, false, nil
	}
	f.applied, f.seen = text, nil
	return text, true, nil
}

// reloadOnChange has the daemon take over what the configuration file says: when
// the file has changed, and at each SIGHUP.
func (o *options) reloadOnChange(ctx context.Context, d *daemon.Daemon) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	look := time.NewTicker(lookTime)
	defer look.Stop()
	f := &watchedFile{read: func() ([]byte, error) { return untrusted.File(o.configFile, untrusted.Config) }}
	if o.configFile != "" {
		f.applied, _ = f.read()
	} else {
		look.Stop()
	}
	o.reloads(ctx, f, look.C, signals, d)
}

// reloader takes over configurations.
type reloader interface {
	Reload(context.Context, daemon.Make) error
}

// reloads reloads at each signal, and at those looks at which the file has changed.
func (o *options) reloads(ctx context.Context, f *watchedFile, look <-chan time.Time, signals <-chan os.Signal, d reloader) {
	for {
		select {
		case <-look:
			if text, yes, err := f.look(); yes {
				o.reload(ctx, d, text, err)
			}
		case <-signals:
			if o.configFile == "" {
				klog.Background().Info("Nothing to reload: there is no --config")
				continue
			}
			text, err := f.read()
			if err == nil {
				f.applied, f.seen = text, nil
			}
			o.reload(ctx, d, text, err)
		case <-ctx.Done():
			return
		}
	}
}

// reload takes over what a text asks for, or says why there is none. Reload itself says
// what came of it.
func (o *options) reload(ctx context.Context, d reloader, text []byte, unread error) {
	make := o.maker(text)
	if unread != nil {
		make = func() (*config.Config, []*profile.Profile, error) { return nil, nil, unread }
	}
	_ = d.Reload(ctx, make)
}

// maker makes what a text of the configuration file asks for.
func (o *options) maker(text []byte) daemon.Make {
	return func() (*config.Config, []*profile.Profile, error) {
		reader := config.With(o.gates)
		c, err := reader.Decode(text, o.configFile)
		if err != nil {
			return nil, nil, err
		}
		if c, err = o.complete(reader, c); err != nil {
			return nil, nil, err
		}
		if len(o.hosted.plugins) > 0 {
			return nil, nil, errors.New("plugins written against kube-scheduler's framework are made at the start only; restart the scheduler")
		}
		profiles, err := o.profiles(c, nil)
		return c, profiles, err
	}
}
