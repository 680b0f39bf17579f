// Command generate makes the Go code of ../provider.proto, beside it, with no
// program but Go: the compiler is a library, and the two generators are tools of
// this module, in the versions that its go.mod says.
package main

import (
	"bytes"
	"context"
	"errors"
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

const source = "provider.proto"

func main() {
	if err := generate(".."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// generate compiles the folder's source and writes what the tools make of it.
func generate(dir string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments go along
	}
	files, err := compiler.Compile(context.Background(), source)
	if err != nil {
		return fmt.Errorf("cannot compile %s: %w", source, err)
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
	if err != nil {
		return fmt.Errorf("cannot ask for code: %w", err)
	}
	return errors.Join(run("protoc-gen-go", request, dir), run("protoc-gen-go-grpc", request, dir))
}

// run gives the request to a generator and writes the files that it answers.
func run(tool string, request []byte, dir string) error {
	cmd := exec.Command("go", "tool", tool)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", tool, err)
	}
	var made pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &made); err != nil {
		return fmt.Errorf("cannot read what %s answers: %w", tool, err)
	}
	if made.Error != nil {
		return fmt.Errorf("%s: %s", tool, made.GetError())
	}
	for _, f := range made.File {
		if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), 0o644); err != nil {
			return fmt.Errorf("cannot write code: %w", err)
		}
	}
	return nil
}
