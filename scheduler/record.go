package scheduler

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/recording"
)

// recordOptions say what is recorded of the scheduler's inputs, and where.
type recordOptions struct {
	to     string
	limit  string
	redact bool
}

func (r *recordOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.to, "record-to", "", "Record all inputs of the scheduler in this directory, for berth replay and berth compare. Each scheduler needs a directory of its own.")
	fs.StringVar(&r.limit, "record-limit", "1Gi", "The number of bytes that the record may have on disk. Its oldest segments are deleted first.")
	fs.BoolVar(&r.redact, "record-redact", false, "Replace names and the values of labels in the record by hashes. Their key is drawn at each start and stored nowhere.")
}

// bytes is the limit as a number.
func (r *recordOptions) bytes() (int64, error) {
	q, err := resource.ParseQuantity(r.limit)
	if err != nil || q.Value() < recording.MinLimit {
		return 0, fmt.Errorf("--record-limit %s: must be a number of bytes, such as 512Mi, and at least 1Mi", r.limit)
	}
	return q.Value(), nil
}

func (r *recordOptions) validate() []error {
	_, err := r.bytes()
	if err == nil && r.to == "" && r.redact {
		err = errors.New("--record-redact: needs --record-to")
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// options are those of the recorder; nil: nothing is recorded.
func (r *recordOptions) options(c *config.Config, o *options) (*recording.Options, error) {
	if r.to == "" {
		return nil, nil
	}
	if len(o.hosted.plugins) > 0 {
		return nil, errors.New("--record-to: cannot be used with hosted plugins (scheduler.WithPlugin): their answers are not recorded, and a replay cannot call them")
	}
	limit, err := r.bytes()
	if err != nil {
		return nil, err
	}
	out := &recording.Options{Dir: r.to, Limit: limit, Header: recording.Header{Berth: revision(), FeatureGates: changedGates(o)}}
	if !r.redact {
		return out, nil
	}
	if err := redactable(c); err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	out.Names = recording.NewNames(key)
	return out, nil
}

// redactable: the record holds the configuration as it is, and what it says of labels'
// values would fit no redacted label.
func redactable(c *config.Config) error {
	for i := range c.Profiles {
		text, err := yaml.Marshal(&c.Profiles[i])
		if err == nil && strings.Contains(string(text), "addedAffinity:") {
			err = fmt.Errorf("--record-redact: profile %s has addedAffinity, which selects by names that the record would not have", *c.Profiles[i].SchedulerName)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changedGates are the feature gates that are not at their defaults.
func changedGates(o *options) map[string]bool {
	changed := map[string]bool{}
	defaults := features.New()
	for name := range defaults.GetAll() { // any order: makes a map
		if is := o.gates.Enabled(name); is != defaults.Enabled(name) {
			changed[string(name)] = is
		}
	}
	return changed
}
