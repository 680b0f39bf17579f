// Command protocolgenerator generates Go code from the only .proto file in a directory, its first argument,
// and writes the code beside that file. It copies both files into the directories in the other arguments. It
// needs no program except Go: the compiler is a library, and the two generators are tools in this module's
// go.mod.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(dir string, others []string) error {
	source, err := findSource(dir)
	if err != nil {
		return err
	}

	made, err := generate(dir, source)
	if err != nil {
		return err
	}

	return copyTo(others, append(made, filepath.Join(dir, source)))
}

func findSource(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return "", fmt.Errorf("cannot look for a source: %w", err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("cannot find the source: %s holds %d .proto files, not one", dir, len(found))
	}

	return filepath.Base(found[0]), nil
}

// generate compiles the directory's source, writes the output of the tools, and returns the files.
func generate(dir, source string) ([]string, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard, // includes comments
	}
	files, err := compiler.Compile(context.Background(), source)
	if err != nil {
		return nil, fmt.Errorf("cannot compile %s: %w", source, err)
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot ask for code: %w", err)
	}
	messages, err := runTool("protoc-gen-go", request, dir)
	if err != nil {
		return nil, err
	}
	services, err := runTool("protoc-gen-go-grpc", request, dir)
	return append(messages, services...), err
}

// runTool passes the request to a generator and writes the resulting files.
func runTool(tool string, request []byte, dir string) (paths []string, err error) {
	cmd := exec.Command("go", "tool", tool)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w", tool, err)
	}
	var made pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &made); err != nil {
		return nil, fmt.Errorf("cannot read what %s answers: %w", tool, err)
	}
	if made.Error != nil {
		return nil, fmt.Errorf("%s: %s", tool, made.GetError())
	}
	for _, f := range made.File {
		path := filepath.Join(dir, f.GetName())
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return nil, fmt.Errorf("cannot write code: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// copyTo copies the files into each of the directories.
func copyTo(folders, files []string) error {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot copy: %w", err)
		}
		for _, folder := range folders {
			if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), data, 0o644); err != nil {
				return fmt.Errorf("cannot copy: %w", err)
			}
		}
	}
	return nil
}
