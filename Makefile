# The commands of the README. Meson and Ninja do the work, in build/.
#
#   make            build into build/; build/inlay runs from there; with WERROR=true a warning ends it
#   make demo       install what is missing, build, and show a tool on a real program
#   make test       install what is missing, build, run every test
#   make test-all   the same, and what takes longer: every program of this machine, rewritten; all stress
#                   switches; other processors, emulated
#   make aarch64       build for AArch64 into build-aarch64/, where qemu-aarch64 runs it
#   make test-aarch64  what that build does: under qemu-aarch64, and on Debian's arm64 kernel in QEMU
#   make test-planted   do the tests notice faults? (part of test-all)
#   make format     lay the source out as .clang-format says
#   make bench      run the benchmark (see bench/run --help)
#   make install    PREFIX=/usr/local DESTDIR=

BUILD   ?= build
PREFIX  ?= /usr/local
JOBS    ?= $(shell nproc)
WERROR  ?= false

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) --quiet

# Says nothing where all is well.
configure = { meson setup $(1) >$(BUILD).log 2>&1 && rm -f $(BUILD).log \
	  || { cat $(BUILD).log >&2; rm -f $(BUILD).log; exit 1; }; }

$(BUILD)/build.ninja:
	@$(call configure,$(BUILD) --prefix '$(PREFIX)' -Dwerror=$(WERROR))

deps-build:
	@scripts/install-deps build

deps:
	@scripts/install-deps

deps-all:
	@scripts/install-deps build test all

demo: deps-build
	@$(MAKE) --no-print-directory all
	@scripts/demo $(BUILD)

# What needs nothing to test with is built while that comes in (what was wrong meanwhile, the build that follows tells).
# A build folder that was made where nothing to test with was installed learns of it.
test: deps-build
	@$(MAKE) -s $(BUILD)/build.ninja
	@scripts/install-deps & deps=$$!; $(MAKE) all >/dev/null 2>&1; wait $$deps
	@[ -d $(BUILD)/tests ] || $(call configure,--reconfigure $(BUILD) -Dtests=enabled)
	@$(MAKE) --no-print-directory all
	@tests/run $(BUILD)

test-all: deps-all test
	@tests/run $(BUILD) live-all snippets-all blame-all stress-all kept-all exact-all trace-all cpython kinds no-ptrace-all browser every-program large processors planted

# Puts one fault after the other into a copy of the tree: the tests must notice.
test-planted: deps all
	@tests/run $(BUILD) planted

# The cross build, for what has been ported so far.
$(BUILD)-aarch64/build.ninja:
	@folder=$$(scripts/fetch-arm64) \
	  && $(call configure,$(BUILD)-aarch64 --cross-file "$$folder/sysroot.cross" --cross-file scripts/aarch64.cross)

aarch64: $(BUILD)-aarch64/build.ninja
	@ninja -C $(BUILD)-aarch64 -j $(JOBS) --quiet

test-aarch64: deps
	@tests/run $(BUILD) aarch64-all

bench: all
	@bench/run --build $(BUILD)

install: all
	@meson configure $(BUILD) '-Dprefix=$(PREFIX)'
	DESTDIR='$(DESTDIR)' meson install -C $(BUILD)

# Lays the source out as .clang-format says; the stage `parts` checks it.
format:
	@scripts/format

clean:
	rm -rf build build-asan build-clang build-gcc build-aarch64

.PHONY: all demo aarch64 test test-all test-aarch64 test-planted bench install format clean deps deps-all deps-build
