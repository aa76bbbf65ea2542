package breaks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-scheduler/berth/lab/conform"
)

const long = `Break Berth on purpose, one rule at a time, and look if conform sees it.

Build each fault of lab/breaks/breaks.txt into a program of its own. The program
compares generated worlds with kube-scheduler. Every mix that the list
names must disagree. The faults of lab/breaks/daemon.txt are built into the
simulation of whole schedulers, of whose seeds 1-200 one must fail. A few are built
into the tests of their package or of the stories, of which one must fail. The exit status is 1 if a
mix does not disagree, if nothing fails, or if a text of the list is not in its file. No file of the tree changes. A fault takes the time
to build and link the packages that depend on its file.`

// NewCommand is the command breaks.
func NewCommand() *cobra.Command {
	root, only := "..", ""
	cmd := &cobra.Command{
		Use:   "breaks",
		Short: "Plant faults in Berth, and check that the tests find them",
		Long:  long,
		Example: `  make breaks                                      # all: a program is built for each
  cd lab && go run ./cmd/breaks --only PodTopologySpread`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := List()
			if err != nil {
				return err
			}
			return run(list, root, only, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&root, "root", root, "root directory of the project")
	cmd.Flags().StringVar(&only, "only", only, "plant only faults whose plugin or description contains this text")
	cmd.AddCommand(conform.NewCommand())
	return cmd
}

// run breaks and compares, one fault after the other, and prints a table.
func run(list []Break, root, only string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "breaks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unseen, tried := 0, 0
	fmt.Fprintln(out, "| Plugin | The line says | File | Mix | Seen as |\n|---|---|---|---|---|")
	for i := range list {
		b := &list[i]
		if !strings.Contains(b.Plugin+" "+b.What, only) {
			continue
		}
		tried++
		program, err := b.build(root, dir)
		if err != nil {
			unseen++
			fmt.Fprintf(out, "| %s | %s | `%s` | - | NOT BUILT: %v |\n", b.Plugin, b.What, b.File, err)
			continue
		}
		for _, mix := range b.Mixes {
			seen, err := b.seen(program, mix, root)
			if err != nil {
				unseen++
				seen = fmt.Sprintf("NOT SEEN: %v", err)
			}
			fmt.Fprintf(out, "| %s | %s | `%s` | %s | %s |\n", b.Plugin, b.What, b.File, mix, seen)
		}
	}
	if tried == 0 {
		return fmt.Errorf("no fault has %q in its plugin or words", only)
	}
	fmt.Fprintf(out, "\n%d faults, %d not seen\n", tried, unseen)
	if unseen > 0 {
		return fmt.Errorf("%d faults were not seen", unseen)
	}
	return nil
}

// build makes the program breaks with the fault in it.
func (b *Break) build(root, dir string) (string, error) {
	source, err := b.broken(root)
	if err != nil {
		return "", err
	}
	at, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(b.File)))
	if err != nil {
		return "", err
	}
	instead, overlay, program := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "breaks")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{at: instead}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(instead, []byte(source), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./cmd/breaks")
	build.Dir = filepath.Join(root, "lab")
	if at := b.tests(); at != "" {
		build = exec.Command("go", "test", "-vet=off", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", program, at)
		build.Dir = root
	}
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(string(said)), " "))
	}
	return program, nil
}

// tests is the package whose tests have to see the fault; "" if conform has to.
func (b *Break) tests() string {
	switch mix := b.Mixes[0]; {
	case slices.Contains(simulations, mix):
		return "./sim/chaos"
	case mix == unit:
		return "./" + path.Dir(b.File)
	case mix == stories:
		return "./sim/scenario"
	}
	return ""
}

// rounds is how often tests that do not fail are run: many draw their cases at random.
const rounds = "20"

// failed runs the tests in the program, those that match the regular expression run, up to
// rounds times. It returns the name of the first that fails; it is an error if none does.
func (b *Break) failed(program, root, run string) (string, error) {
	test := exec.Command(program, "-test.failfast", "-test.count", rounds, "-test.run", run)
	test.Dir = filepath.Join(root, filepath.FromSlash(b.tests()))
	said, err := test.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return "", err
	}
	if _, name, found := strings.Cut(string(said), "--- FAIL: "); found {
		name, _, _ = strings.Cut(name, " ")
		return name, nil
	}
	return "", errors.New("no test fails")
}

// seen plays the mix's worlds. It is an error if no side disagrees; else it is
// what the first disagreement is about.
func (b *Break) seen(program, mix, root string) (string, error) {
	switch _, with, _ := strings.Cut(mix, "-"); {
	case slices.Contains(simulations, mix):
		return b.shown(program, "-with", with)
	case mix == unit:
		return b.failed(program, root, "")
	case mix == stories:
		return b.failed(program, root, "TestStories$")
	}
	said, err := exec.Command(program, "conform", "--brief", "--mix", mix, "--seeds", b.Seeds).CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return "", err
	}
	seed, what, found := strings.Cut(strings.TrimPrefix(string(said), mix+", seed "), ": ")
	if !found || !strings.HasPrefix(string(said), mix) {
		return "", fmt.Errorf("in seeds %s: %s", b.Seeds, strings.Join(strings.Fields(string(said)), " "))
	}
	what, _, _ = strings.Cut(what, ":")
	what, _, _ = strings.Cut(what, ", node ")
	return fmt.Sprintf("%s, seed %s", what, seed), nil
}

// A fault may keep a cluster busy for ever, and the simulation plays all seeds that it is
// given: it gets so many at a time.
const seedsAtOnce = 10

// shown runs the simulation's seeds until one fails. It is an error if none does;
// else it is the seed, and what it breaks.
func (b *Break) shown(program string, flags ...string) (string, error) {
	var first, last int
	if _, err := fmt.Sscanf(b.Seeds, "%d-%d", &first, &last); err != nil {
		return "", fmt.Errorf("seeds %q: %w", b.Seeds, err)
	}
	for ; first <= last; first += seedsAtOnce {
		seeds := fmt.Sprintf("%d-%d", first, min(first+seedsAtOnce-1, last))
		said, err := exec.Command(program, append(flags, "-test.run", "TestSeeds$", "-seeds", seeds)...).CombinedOutput()
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) {
			return "", err
		}
		if _, what, found := strings.Cut(string(said), ": seed-"); found {
			what, _, _ = strings.Cut(what, "\n")
			return "seed " + what, nil
		}
		if err != nil {
			return "", fmt.Errorf("in seeds %s: %s", seeds, strings.Join(strings.Fields(string(said)), " "))
		}
	}
	return "", fmt.Errorf("no seed of %s fails", b.Seeds)
}
