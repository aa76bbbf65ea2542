package tool

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// usualTime is for commands that play a whole cluster.
const usualTime = 10 * time.Minute

// timeLimit is the time that a command takes for its answer, once the cluster is read.
type timeLimit struct{ most time.Duration }

func (l *timeLimit) addFlag(f *pflag.FlagSet, usual time.Duration) {
	f.DurationVar(&l.most, "timeout", usual, "end after this time, counted once the cluster is read, with what is known until then; the answer says that it was cut")
}

func (l *timeLimit) check() error {
	if l.most <= 0 {
		return fmt.Errorf("--timeout: %s is not positive", l.most)
	}
	return nil
}

func (l *timeLimit) start(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.most)
}
