package tool

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/featuregate"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/edge/config"
	"github.com/berth-scheduler/berth/edge/config/features"
	"github.com/berth-scheduler/berth/edge/spelling"
	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/untrusted"
	"github.com/berth-scheduler/berth/sim"
)

const configExamples = `  # Before a configuration is rolled out: everything that is wrong with it
  %[1]s config check scheduler.yaml

  # The configuration with all defaults, and where it differs from them
  %[1]s config show --effective scheduler.yaml
  %[1]s config show --effective --diff scheduler.yaml`

// pluginsUsage is that of --plugins where a configuration names plugins.
const pluginsUsage = "names of plugins that the scheduler has and this tool was not built with"

// configuration is what the flags of `berth config` say.
type configuration struct {
	gates     string
	plugins   *sim.Plugins // that the tool was built with
	own       []string
	effective bool
	diff      bool
}

func newConfig(name string, own *sim.Plugins) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check and show a scheduler's configuration file",
		Example: fmt.Sprintf(configExamples, name),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), spelling.DidYouMean(args[0], []string{"check", "show"}))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c := &configuration{plugins: own}
	cmd.PersistentFlags().StringVar(&c.gates, "feature-gates", "", "the scheduler's feature gates, as its flag has them: NAME=true,NAME=false")
	cmd.AddCommand(c.newCheck(name), c.newShow(name))
	return cmd
}

func (c *configuration) newCheck(name string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "List everything that is wrong with a configuration file",
		Long: `List everything that is wrong with a configuration file of kube-scheduler or Berth,
by line. The file is not sent anywhere. A file without a problem is one that
berth-scheduler starts with, if the cluster lets it. What a scheduler starts with all
the same is a warning: a plugin that is disabled and not there, or one that is
enabled at filter or score, but not where kube-scheduler makes its state.

Exit status: 0 if nothing is wrong, 2 if something is.`,
		Example: fmt.Sprintf("  %[1]s config check scheduler.yaml\n  %[1]s config check --plugins TeamLimit,Quota scheduler.yaml", name),
		Args:    oneConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.check(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringSliceVar(&c.own, "plugins", nil, pluginsUsage)
	return cmd
}

func (c *configuration) newShow(name string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show FILE --effective",
		Short: "Show a configuration file with all defaults",
		Long: `Show a configuration file with all defaults, as berth-scheduler would run with
it. Keys and passwords are left out. --diff shows the lines that differ from a
scheduler without a file: - stands before what a default would be, + before what
the file makes of it. Each profile is compared with that of a scheduler without a
file. The name of a plugin stands behind # where its arguments begin.`,
		Example: fmt.Sprintf("  %[1]s config show scheduler.yaml\n  %[1]s config show --diff scheduler.yaml", name),
		Args:    oneConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.show(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&c.effective, "effective", true, "fill in the defaults; a file is shown in no other way")
	cmd.Flags().BoolVar(&c.diff, "diff", false, "show only what differs from the defaults")
	return cmd
}

// reader reads configurations under the given gates.
func (c *configuration) reader() (config.Reader, error) {
	gates, err := gatesOf(c.gates, features.Unsupported)
	if err != nil {
		return config.Reader{}, err
	}
	return config.With(gates), nil
}

// gatesOf are the gates that the flag --feature-gates sets. The error holds what unsupported
// says of them.
func gatesOf(flag string, unsupported func(featuregate.FeatureGate) []error) (featuregate.FeatureGate, error) {
	gates := features.New()
	if err := gates.Set(flag); err != nil {
		return nil, fmt.Errorf("--feature-gates: %w", err)
	}
	if errs := unsupported(gates); len(errs) > 0 {
		return nil, fmt.Errorf("--feature-gates: %w", utilerrors.NewAggregate(errs))
	}
	return gates, nil
}

func readConfig(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return readAll("standard input", stdin, untrusted.Config)
	}
	return readFile("", file, untrusted.Config)
}

func (c *configuration) check(file string, stdin io.Reader, out io.Writer) error {
	r, err := c.reader()
	if err != nil {
		return err
	}
	text, err := readConfig(file, stdin)
	if err != nil {
		return err
	}
	problems := 0
	for _, p := range r.Check(text, append(c.plugins.Names(), c.own...)) {
		at := file
		if p.Line > 0 {
			at += fmt.Sprintf(":%d", p.Line)
		}
		if p.Field != "" {
			at += ": " + p.Field
		}
		if p.Warning {
			at += ": warning"
		} else {
			problems++
		}
		terminal.Fprintf(out, "%s: %s\n", at, p.Reason)
	}
	if problems == 0 {
		terminal.Fprintf(out, "%s: nothing is wrong\n", file)
		return nil
	}
	return errors.New(terminal.Count(problems, "problem"))
}

func (c *configuration) show(file string, stdin io.Reader, out io.Writer) error {
	if !c.effective {
		return errors.New("--effective=false: a file can only be shown with its defaults")
	}
	r, err := c.reader()
	if err != nil {
		return err
	}
	text, err := readConfig(file, stdin)
	if err != nil {
		return err
	}
	decoded, err := r.Decode(text, file)
	if err != nil {
		return fmt.Errorf("%w; \"config check\" lists everything that is wrong, by line", err)
	}
	if !c.diff {
		now, err := config.YAML(decoded)
		if err != nil {
			return err
		}
		_, err = out.Write(now)
		return err
	}
	differences, err := differences(r.Default(), decoded)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, differences)
	return err
}

// differences are the lines that differ between the defaults and a configuration, those
// of each profile under its name.
func differences(defaults, c *config.Config) (string, error) {
	byDefault := &defaults.Profiles[0]
	before, was, err := sections(defaults, byDefault)
	if err != nil {
		return "", err
	}
	common, profiles := "", ""
	for i := range c.Profiles {
		p := &c.Profiles[i]
		now, is, err := sections(c, p)
		if err != nil {
			return "", err
		}
		common = diffLines(before, now) // the same for each profile
		lines := diffLines(was, is)
		switch named := "- schedulerName: " + terminal.Escape(*p.SchedulerName) + "\n"; {
		case *p.SchedulerName != *byDefault.SchedulerName:
			profiles += "+ " + named + lines
		case lines != "":
			profiles += "  " + named + lines
		}
	}
	if profiles != "" {
		common += "  " + profilesHead + profiles
	}
	return common, nil
}

// profilesHead is the line that profiles follow. It is the last field.
const profilesHead = "profiles:\n"

// sections are the lines of a configuration without its profiles, and those of one of
// them without its name.
func sections(c *config.Config, p *configv1.KubeSchedulerProfile) (common, profile string, err error) {
	whole, one := *c, *p
	one.SchedulerName = nil
	whole.Profiles = []configv1.KubeSchedulerProfile{one}
	text, err := config.YAML(&whole)
	common, profile, _ = strings.Cut(string(text), profilesHead+"- ")
	return common, "  " + profile, err
}

// diffLines is the lines that differ between two texts, each change under the
// lines that stand above it by indentation.
func diffLines(before, now string) string {
	a, b := strings.Split(before, "\n"), strings.Split(now, "\n")
	common := longestCommon(a, b)
	var out strings.Builder
	var shown []string // the lines above the last change
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		var mark, line, above string
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && common[i][j] == common[i+1][j+1]+1:
			i, j = i+1, j+1
			continue
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			mark, line, above = "-", a[i], strings.Join(parents(a, i), "\n")
			i++
		default:
			mark, line, above = "+", b[j], strings.Join(parents(b, j), "\n")
			j++
		}
		for _, p := range strings.Split(above, "\n") {
			if p != "" && !slices.Contains(shown, p) {
				terminal.Fprintf(&out, "  %s\n", p)
			}
		}
		shown = append(strings.Split(above, "\n"), line)
		terminal.Fprintf(&out, "%s %s\n", mark, line)
	}
	return out.String()
}

// longestCommon has, for each place in both, how many lines of the rest are in
// both, in order.
func longestCommon(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// parents are the lines that a line stands under, outermost first.
func parents(lines []string, at int) []string {
	depth := func(line string) int { // an item of a list stands as far in as what holds the list
		text := strings.TrimLeft(line, " ")
		in := 2 * (len(line) - len(text))
		if strings.HasPrefix(text, "- ") {
			in++
		}
		return in
	}
	var above []string
	below := depth(lines[at])
	for i := at - 1; i >= 0 && below > 0; i-- {
		if d := depth(lines[i]); d < below {
			above, below = append(above, withName(lines, i)), d
		}
	}
	slices.Reverse(above)
	return above
}

// withName is a line. If an item of a list begins there, the name that the item has
// further down stands behind it as a comment.
func withName(lines []string, at int) string {
	line := lines[at]
	first, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "- ")
	if !ok {
		return line
	}
	indent := strings.Repeat(" ", len(line)-len(first))
	for _, next := range lines[at+1:] {
		field, ok := strings.CutPrefix(next, indent)
		if !ok {
			break
		}
		if name, ok := strings.CutPrefix(field, "name: "); ok {
			return line + " # " + name
		}
	}
	return line
}
