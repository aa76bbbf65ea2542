package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// guides are a man page a command and the completions of the shells. They come
// from the programs themselves.
func guides(p programs, arch string, made time.Time) ([]file, error) {
	var files []file
	for _, program := range []string{tool, scheduler} {
		if err := pages(&files, p.path(arch, program), []string{program}, made); err != nil {
			return nil, err
		}
	}
	for shell, name := range map[string]string{"bash": "berth.bash", "zsh": "_berth", "fish": "berth.fish"} { // any order: sorted when packed
		text, err := say(p.path(arch, tool), "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, mode: 0o644, body: []byte(text)})
	}
	return files, nil
}

func say(program string, arguments ...string) (string, error) {
	out, err := exec.Command(program, arguments...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(arguments, " "), err)
	}
	return string(out), nil
}

// listed finds the commands below one in its help.
var listed = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) +\S`)

// pages adds the page of a command and those of the commands below it.
func pages(files *[]file, program string, command []string, made time.Time) error {
	help, err := say(program, append(command[1:len(command):len(command)], "--help")...)
	if err != nil {
		return err
	}
	name := strings.Join(command, "-")
	*files = append(*files, file{name: "man/man1/" + name + ".1", mode: 0o644, body: page(name, help, made)})
	_, below, found := strings.Cut(help, "Available Commands:\n")
	if !found {
		return nil
	}
	below, _, _ = strings.Cut(below, "\n\n")
	for _, match := range listed.FindAllStringSubmatch(below, -1) {
		if match[1] == "help" || match[1] == "completion" {
			continue
		}
		if err := pages(files, program, append(command[:len(command):len(command)], match[1]), made); err != nil {
			return err
		}
	}
	return nil
}

// page is a man page that shows a command's help as it is. Its first line says
// what the command does.
func page(name, help string, made time.Time) []byte {
	help = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(help)
	about, _, _ := strings.Cut(help, "\n")
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s 1 %s Berth\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", strings.ToUpper(name), made.Format(time.DateOnly), name, about)
	for line := range strings.Lines(help) {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line // roff would take it for a request
		}
		out.WriteString(line)
	}
	out.WriteString(".fi\n")
	return []byte(out.String())
}
