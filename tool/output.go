package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/berth-scheduler/berth/edge/terminal"
	"github.com/berth-scheduler/berth/edge/untrusted"
)

// addOutput adds -o, which takes one of the command's forms, "json" among them, and is the
// first where it is not given. It also takes kubectl's names and templates, which are
// made of the JSON. A shell completes it. The note follows the forms in the help. Call it
// when cmd has its RunE.
func addOutput(cmd *cobra.Command, output *string, note string, forms ...string) {
	all := append(slices.Clip(forms), "name", "jsonpath=TEMPLATE", "go-template=TEMPLATE")
	last := len(all) - 1
	of := strings.Join(all[:last], ", ") + " or " + all[last]
	cmd.Flags().StringVarP(output, "output", "o", forms[0], "output format: "+of+note)
	templates := genericclioptions.NewKubeTemplatePrintFlags()
	templates.AddFlags(cmd)
	complete := cobra.FixedCompletions(append(slices.Clip(forms), "name", "jsonpath=", "go-template="), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // only without the flag
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *templates.TemplateArgument != "" && !cmd.Flags().Changed("output") {
			*output = "go-template"
		}
		if slices.Contains(forms, *output) {
			return run(cmd, args)
		}
		printer, err := printerFor(*output, templates)
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			return fmt.Errorf("-o %s: must be %s", *output, of)
		} else if err != nil {
			return fmt.Errorf("-o %s: %w", *output, err)
		}
		*output = "json"
		documents, end := startPrinting(printer, cmd.OutOrStdout())
		cmd.SetOut(documents)
		err = run(cmd, args)
		return cmp.Or(end(), err)
	}
}

// writeData writes a value as JSON, or as YAML if form is "yaml".
func writeData(out io.Writer, form string, value any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	data := b.Bytes()
	if form == "yaml" {
		var err error
		if data, err = terminal.YAML(data); err != nil {
			return err
		}
	}
	_, err := out.Write(data)
	return err
}

// printerFor returns kubectl's printer of a form, without text that acts on a terminal or
// breaks a line by itself.
func printerFor(form string, templates *genericclioptions.KubeTemplatePrintFlags) (printers.ResourcePrinter, error) {
	if form == "name" {
		return printers.ResourcePrinterFunc(printNames), nil
	}
	kind, value, _ := strings.Cut(form, "=")
	if strings.HasSuffix(kind, "file") {
		if err := untrusted.Check(cmp.Or(*templates.TemplateArgument, value), untrusted.Config); err != nil {
			return nil, err
		}
	}
	p, err := templates.ToPrinter(form)
	if err != nil || kind == "jsonpath-as-json" { // JSON escapes for itself
		return p, err
	}
	return printers.ResourcePrinterFunc(func(o runtime.Object, out io.Writer) error {
		content := o.(*unstructured.Unstructured)
		return p.PrintObj(&unstructured.Unstructured{Object: escaped(content.Object).(map[string]any)}, out)
	}), nil
}

// escaped returns the value with escapes in its texts.
func escaped(v any) any {
	switch v := v.(type) {
	case string:
		return terminal.Escape(v)
	case []any:
		for i := range v {
			v[i] = escaped(v[i])
		}
	case map[string]any:
		safe := make(map[string]any, len(v))
		for key, of := range v {
			safe[terminal.Escape(key)] = escaped(of)
		}
		return safe
	}
	return v
}

// printNames prints the pod that an answer is about, or those that were placed or not.
func printNames(o runtime.Object, out io.Writer) error {
	content := o.(*unstructured.Unstructured).Object
	var pods []string
	if pod, ok := content["pod"].(string); ok {
		pods = []string{pod}
	} else if placed, ok := content["placements"].(map[string]any); ok {
		unplaced, _ := content["unplaced"].(map[string]any)
		pods = slices.Sorted(maps.Keys(placed))
		pods = slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(pods, maps.Keys(unplaced)))))
	} else {
		return errors.New("-o name: the answer is about no single object; take -o jsonpath=TEMPLATE")
	}
	for _, pod := range pods {
		named := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		named.SetName(terminal.Escape(pod[strings.LastIndex(pod, "/")+1:]))
		if err := (&printers.NamePrinter{}).PrintObj(named, out); err != nil {
			return err
		}
	}
	return nil
}

// startPrinting returns a writer for JSON documents, each of which is printed once it is whole.
// end returns when the last one is, and why one was not.
func startPrinting(p printers.ResourcePrinter, out io.Writer) (documents io.Writer, end func() error) {
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := printAll(json.NewDecoder(from), p, out)
		_ = from.CloseWithError(err)
		done <- err
	}()
	return to, func() error {
		_ = to.Close()
		return <-done
	}
}

func printAll(documents *json.Decoder, p printers.ResourcePrinter, out io.Writer) error {
	for {
		var text json.RawMessage
		if err := documents.Decode(&text); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var content map[string]any
		if err := utiljson.Unmarshal(text, &content); err != nil {
			return err
		}
		var shown bytes.Buffer // with an error, kubectl's printers show all that they were given
		if err := p.PrintObj(&unstructured.Unstructured{Object: content}, &shown); err != nil {
			return err
		}
		if _, err := shown.WriteTo(out); err != nil {
			return err
		}
	}
}
