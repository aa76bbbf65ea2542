package tool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim"
	"github.com/berth-scheduler/berth/sim/replay"
)

// comparing is what the flags of `berth compare` say.
type comparing struct {
	record, html, output string
	workers              int
	plugins              *sim.Plugins
	own                  []string
}

const compareLong = `Play one recorded day under two configurations and compare: which pods went
elsewhere, which were placed under one alone, preemptions, how much of the nodes
was requested and how much of the rest was of no use, how many nodes had no pods but
those of DaemonSets and static ones and could go, and how long pods waited.

By workload: worse or better under B, and by what: pods without a node, preempted pods,
the longest wait, or more pods at the same time in one zone or on one node.

The record is of "berth-scheduler --record-to" or "berth record". Its nodes, pods
and other objects come and go at their times under both configurations; see
"replay --help". The word "recorded" stands for the record's own configuration.`

const compareExamples = `  # The same day, before and after a change
  %[1]s compare old.yaml new.yaml --record /var/lib/berth/record

  # As a page for others, which needs no other file
  %[1]s compare recorded new.yaml --record record/ --html day.html

  # Every workload, and every pod
  %[1]s compare recorded new.yaml --record record/ -o wide

  # For a script
  %[1]s compare recorded new.yaml --record record/ -o json | jq '.b.waitP99 - .a.waitP99'
  %[1]s compare recorded new.yaml --record record/ -o json | jq '.workloads[] | select(.verdict == "worse")'`

func newCompare(name string, own *sim.Plugins) *cobra.Command {
	c := comparing{plugins: own, workers: runtime.GOMAXPROCS(0)}
	cmd := &cobra.Command{
		Use:     "compare A.yaml B.yaml --record DIR",
		Short:   "Compare two configurations on a recorded day",
		Long:    compareLong,
		Example: fmt.Sprintf(compareExamples, name),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || c.record == "" {
				return errors.New("give two configurations, and a record with --record DIR")
			}
			return c.run(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&c.record, "record", "", "directory with the record")
	cmd.Flags().StringVar(&c.html, "html", "", htmlUsage)
	cmd.Flags().StringSliceVar(&c.own, "plugins", nil, pluginsUsage)
	addOutput(cmd, &c.output, "", "table", "wide", "json")
	return cmd
}

func (c *comparing) run(files []string, stdout, stderr io.Writer) error {
	var sides [2]*playing
	var served []string // by either side or by the recorded scheduler
	for i, file := range files {
		p, err := c.side(file)
		if err != nil {
			return err
		}
		sides[i], served = p, append(served, p.served()...)
	}
	var days [2]*replay.Day
	var said []string
	for i, p := range sides {
		day, told, err := c.day(p, served)
		told = slices.DeleteFunc(told, func(note string) bool { return slices.Contains(said, note) })
		notes(stderr, told)
		said = append(said, told...)
		if err != nil {
			return err
		}
		days[i] = day
	}
	result := replay.Compare(files[0], files[1], days[0], days[1])
	if c.html != "" {
		var answer bytes.Buffer
		if err := writeJSON(&answer, "ComparisonResult", result); err != nil {
			return err
		}
		if err := writeHTML(c.html, "compare", answer.Bytes()); err != nil {
			return err
		}
	}
	out := bufio.NewWriterSize(stdout, 1<<16)
	err := error(nil)
	if c.output == "json" {
		err = writeJSON(out, "ComparisonResult", result)
	} else {
		err = result.Write(out, c.output == "wide")
	}
	return errors.Join(err, out.Flush())
}

// side returns what plays the record with a configuration.
func (c *comparing) side(file string) (*playing, error) {
	log, err := recording.Open(c.record)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	header := log.Header()
	if file == "recorded" {
		file = ""
	}
	text, err := configText("", file)
	if err != nil {
		return nil, err
	}
	p, err := playWith(&header, file, text, c.plugins, c.own)
	if err == nil {
		p.options.Workers = c.workers
	}
	return p, err
}

// day plays the record. Pods of the served schedulers are decided on.
func (c *comparing) day(p *playing, served []string) (*replay.Day, []string, error) {
	log, err := recording.Open(c.record)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	day, err := replay.Run(log, served, p.options, p.scheduler)
	return day, append(log.Notes, p.notes...), err
}
