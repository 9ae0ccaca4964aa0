# SPDX-License-Identifier: BSD-3-Clause
# nczarrfs - one non-recursive makefile.
#   make            build/nczarrfs          make check     install test clients, build, test
#                                           make check-all with every file of the corpus
#   make demo       a first minute          make bench     speed, as ratios
#   make page       the reader that the page of `serve` needs, from npm; make does so, too
#   make install    prefix=/usr/local DESTDIR= PLUGINDIR=; make uninstall with the same
#   make deb        a Debian package
VERSION := 1.0.0
comma := ,
# CC, CPPFLAGS, CFLAGS, LDFLAGS, PKG_CONFIG, PREFIX and DESTDIR are taken from the environment and from
# the command line.
PREFIX ?= /usr/local
prefix ?= $(PREFIX)
BUILD ?= build
# V=1 shows the commands
ifeq ($(V),)
Q := @
endif
CC ?= cc
PKG_CONFIG ?= pkg-config
MODULES := base mountcfg codecs translate nczarr hdf5view fusefs
PKGS := fuse3 hdf5 zlib libdeflate jansson blosc libzstd liblzma liblz4 libcurl libcrypto expat \
	libseccomp libmicrohttpd
# Those without a pkg-config file.
PLAIN_LIBS := -lbz2 -laec -llzf -lsnappy -lpthread -ldl -lm

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wconversion -Wsign-conversion \
	-Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wformat=2 -Wundef \
	-Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough
ifneq ($(WERROR),)
WARN += -Werror
endif
# The caller's CFLAGS replace OPT; the flags that the program needs are added to them.
GIVEN_CFLAGS := $(CFLAGS)
GIVEN_FLAGS := $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
OPT ?= $(if $(strip $(GIVEN_CFLAGS)),,-O2 -g)
override CPPFLAGS += -D_GNU_SOURCE -I. -DNCZARRFS_VERSION='"$(VERSION)"' -DFUSE_USE_VERSION=314 \
	-DH5_USE_110_API
# Nothing that is built knows in which directory.
override CFLAGS += -std=c17 $(OPT) $(WARN) -fvisibility=hidden -fstack-protector-strong \
	-ffunction-sections -fdata-sections $(if $(SANITIZE),,-ffile-prefix-map=$(CURDIR)=.)
override LDFLAGS += -Wl,-z,relro,-z,now -Wl,--gc-sections
# SANITIZE=1: address and undefined behaviour; SANITIZE=thread: data races; SANITIZE=fuzz: libFuzzer;
# SANITIZE=coverage: which lines run, for gcov
ifeq ($(SANITIZE),1)
override CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=address,undefined
BUILD := build-asan
else ifeq ($(SANITIZE),thread)
override CFLAGS += -fsanitize=thread -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=thread
BUILD := build-tsan
else ifeq ($(SANITIZE),fuzz)
CC := clang
override CFLAGS += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
override LDFLAGS += -fsanitize=address,undefined
FUZZ_LINK := -fsanitize=fuzzer
FUZZ_MAIN :=
OPT := -O1 -gline-tables-only
BUILD := build-fuzz
else ifeq ($(SANITIZE),coverage)
override CFLAGS += --coverage -fprofile-abs-path -fprofile-update=atomic
# not for plugins of tests, which are not counted
COVERAGE_ENDS := -include tests/coverage/ends.h
override CPPFLAGS += $(COVERAGE_ENDS) -DSANDBOX_OFF=1
override LDFLAGS += --coverage
OPT := -O0 -g1
BUILD := build-cov
endif

# Asked for once, and only when something is compiled: `make demo` may have to install pkg-config.
# Headers of libraries are not ours: what newer compilers say about them (libfuse 3.17: a stray ;) is not
# asked for.
PKG_CFLAGS = $(eval PKG_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(PKGS))))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS)) $(PLAIN_LIBS) $(HDF4_LIBS))$(PKG_LIBS)

# libhdf4, which has no pkg-config file, where it is there: without it HDF4 is not built in. The one
# without netCDF's functions is preferred; from 4.4 on there is no other, and libdf is libhdf.
# HDF4_LIBS= (nothing) builds without.
HDF4_SETS := -lmfhdfalt_-ldfalt -lmfhdf_-ldf -L/usr/lib64/hdf_-lmfhdf_-ldf -lmfhdf_-lhdf
HDF4_TRY = printf '\043include "hdf5view/hdf4/hdf4_library.h"\nint main(void) { return SDend(0); }\n' | \
	$(CC) -I. $(GIVEN_FLAGS) -x c - -o /dev/null
HDF4_LIBS = $(eval HDF4_LIBS := $(subst _, ,$(firstword $(foreach s,$(HDF4_SETS),$(shell \
	$(HDF4_TRY) $(subst _, ,$(s)) 2>/dev/null && echo $(s))))))$(HDF4_LIBS)
HDF4_CFLAGS = $(if $(strip $(HDF4_LIBS)),-DNCZARRFS_HDF4)
$(BUILD)/obj/hdf5view/hdf4/%.o $(BUILD)/tests/hdf4_make $(BUILD)/unit/hdf5view/hdf4/test_hdf4: override CPPFLAGS += $(HDF4_CFLAGS)

# Rooms are folders of a module; plugins are built apart.
SRC := $(filter-out codecs/export/plugins/%,$(sort $(shell find $(MODULES) -name '*.c')))
OBJ := $(SRC:%.c=$(BUILD)/obj/%.o)
LIBOBJ := $(filter-out $(BUILD)/obj/fusefs/main.o,$(OBJ))

all: $(BUILD)/nczarrfs plugins

$(BUILD)/nczarrfs: $(OBJ)
	@echo "  LD $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# What the page of `nczarrfs serve` draws with, from npm where that is there; a name of its own for
# all builds.
PAGE_ZARR := build/page/zarr.js
$(PAGE_ZARR): scripts/page fusefs/http/page/npm/package.json fusefs/http/page/npm/package-lock.json
	$(Q)scripts/page $@
$(BUILD)/obj/fusefs/http/page.o: override CPPFLAGS += -DPAGE_ZARR='"$(PAGE_ZARR)"'
$(BUILD)/obj/fusefs/http/page.o: $(PAGE_ZARR) $(wildcard fusefs/http/page/*.*)
# again, when it could not be had
page:
	$(Q)grep -qs 'missing = false' $(PAGE_ZARR) || rm -f $(PAGE_ZARR)
	$(Q)$(MAKE) --no-print-directory $(BUILD)/nczarrfs
.PHONY: page

# Unit tests: tests/unit/<module>/<room>/test_<what>.c, linked with that module and the ones below it,
# so that an upward call does not link.
below_base := base
below_mountcfg := mountcfg base
below_codecs := codecs base
below_translate := translate $(below_codecs)
below_nczarr := nczarr $(below_translate)
below_hdf5view := hdf5view $(below_translate)
below_fusefs := fusefs mountcfg nczarr $(below_hdf5view)
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(sort $(shell find tests/unit -name 'test_*.c')))
module_of = $(firstword $(subst /, ,$(1)))
objs_of = $(foreach m,$(below_$(1)),$(filter $(BUILD)/obj/$(m)/%,$(LIBOBJ)))

.SECONDEXPANSION:
$(BUILD)/unit/%: tests/unit/%.c $$(call objs_of,$$(call module_of,%)) Makefile
	@mkdir -p $(@D)
	@echo "  TEST $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< \
		$(filter %.o,$^) $(PKG_LIBS) -lcmocka

# Headers of tests: a change of one rebuilds what may use it.
$(UNIT): $(shell find tests/unit -name '*.h')

# Plugins for tests; those of odd.c are no good, each in its own way.
ODD := 1 2 3 4 5 6 7 8
TEST_PLUGIN_CC = $(CC) $(filter-out $(COVERAGE_ENDS),$(CPPFLAGS)) $(PKG_CFLAGS) -std=c17 $(OPT) $(WARN)
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$(BUILD)/test-plugins/lib%.so,$(filter-out \
	%/odd.c,$(wildcard tests/plugins/*.c))) $(ODD:%=$(BUILD)/test-plugins/libodd%.so)

$(BUILD)/test-plugins/libodd%.so: tests/plugins/odd.c tests/plugins/common.h Makefile
	@mkdir -p $(@D)
	$(Q)$(TEST_PLUGIN_CC) -DODD=$* -fvisibility=hidden \
		-fPIC -shared -o $@ $< $(shell $(PKG_CONFIG) --libs hdf5)
$(BUILD)/test-plugins/lib%.so: tests/plugins/%.c tests/plugins/common.h Makefile
	@mkdir -p $(@D)
	$(Q)$(TEST_PLUGIN_CC) -fvisibility=hidden \
		-fPIC -shared -o $@ $< $(shell $(PKG_CONFIG) --libs hdf5)

test-plugins: $(TEST_PLUGINS)
.PHONY: test-plugins

# A target for each unit program, so that make -j runs several at a time. The output of each is
# printed at its end, in one piece.
UNIT_RUNS := $(UNIT:%=%.run)
$(UNIT_RUNS): %.run: % $(TEST_PLUGINS)
	@r=0; $* >$*.log 2>&1 || r=$$?; echo "== $*"; cat $*.log; exit $$r

unit: $(UNIT_RUNS)

# Programs that end-to-end tests talk to.
TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/%,$(wildcard tests/tools/*.c))

$(BUILD)/tests/%: tests/tools/%.c $(LIBOBJ) Makefile
	@mkdir -p $(@D)
	@echo "  TOOL $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIBOBJ) $(PKG_LIBS)

# What makes calls fail, preloaded by tests; never with sanitizers.
FAULTS := $(BUILD)/tests/libfaults.so
$(FAULTS): tests/faults/shim.c Makefile
	@mkdir -p $(@D)
	@echo "  TOOL $@"
	$(Q)$(CC) -D_GNU_SOURCE -std=c17 $(OPT) $(WARN) -fvisibility=hidden -fPIC -shared -o $@ $<

tools: $(TOOLS) $(FAULTS)

format:
	clang-format -i $(SRC) $(shell find tests/unit -name '*.[ch]')

clean:
	rm -rf build build-asan build-tsan build-fuzz build-cov

.PHONY: all unit $(UNIT_RUNS) tools format clean
-include $(OBJ:.o=.d)

# --- plugins of ours: begin ---------------------------------------------------------------------
# make plugins: a shared library for each codec with an HDF5 filter id that libhdf5 lacks, to be
# loaded by programs of others (docs/dev/our-plugins.md). Always without sanitizers; each is linked
# with what it needs only. Those of PLUGINS_NCZ are for netCDF-C's NCZarr, too: codecs that
# numcodecs has.
PLUGINS := bitgroom bitround bitshuffle blosc bzip2 granularbr lz4 lzf zstd
PLUGINS_NCZ := blosc bzip2 zstd
plugin_ops_bitround := bitround_hdf5
plugin_ops_lz4 := lz4_hdf5
plugin_ops = codec_$(or $(plugin_ops_$(1)),$(1))

PLUGIN_OUT := $(PLUGINS:%=$(BUILD)/plugins/libnczarrfs_h5%.so)
PLUGIN_SRC := $(filter base/% codecs/%,$(SRC)) codecs/export/plugins/caller.c
PLUGIN_OBJ := $(PLUGIN_SRC:%.c=$(BUILD)/plugins/obj/%.o)
PLUGIN_CFLAGS = $(filter-out -fsanitize=% -fno-sanitize-recover=%,$(CFLAGS)) -fPIC \
	-ffunction-sections -fdata-sections
PLUGIN_LDFLAGS = $(filter-out -fsanitize=%,$(LDFLAGS)) -shared -Wl,--gc-sections -Wl,--as-needed \
	-Wl,-z,defs -Wl,--exclude-libs,ALL
PLUGIN_LIBS = $(shell $(PKG_CONFIG) --libs $(filter-out fuse3 hdf5 jansson libseccomp libmicrohttpd,$(PKGS))) $(PLAIN_LIBS)

plugins: $(PLUGIN_OUT)

# tests/unit/plugins/*.c load them; the program has functions that plugins look for
below_plugins := codecs base
PLUGIN_TESTS := $(filter $(BUILD)/unit/plugins/%,$(UNIT))
$(PLUGIN_TESTS): $(PLUGIN_OUT)
$(PLUGIN_TESTS): override LDFLAGS += -rdynamic

$(BUILD)/plugins/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(PLUGIN_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/plugins/obj/%.h5.o: codecs/export/plugins/h5plugin.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(PLUGIN_CFLAGS) -MMD -MP -c -o $@ \
		-DPLUGIN_OPS=$(call plugin_ops,$*) $<

$(BUILD)/plugins/obj/%.ncz.o: codecs/export/plugins/ncz.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(PLUGIN_CFLAGS) -MMD -MP -c -o $@ \
		-DPLUGIN_OPS=$(call plugin_ops,$*) $<

# Only the members that a codec needs are taken from it.
$(BUILD)/plugins/obj/codecs.a: $(PLUGIN_OBJ)
	@rm -f $@
	$(Q)$(AR) qcs $@ $^

$(PLUGINS_NCZ:%=$(BUILD)/plugins/libnczarrfs_h5%.so): $(BUILD)/plugins/libnczarrfs_h5%.so: \
	$(BUILD)/plugins/obj/%.ncz.o
$(PLUGIN_OUT): $(BUILD)/plugins/libnczarrfs_h5%.so: $(BUILD)/plugins/obj/%.h5.o \
		$(BUILD)/plugins/obj/codecs.a
	@echo "  PLUGIN $@"
	$(Q)$(CC) $(PLUGIN_CFLAGS) $(PLUGIN_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(PLUGIN_LIBS)

.PHONY: plugins
.SECONDARY: $(PLUGINS:%=$(BUILD)/plugins/obj/%.h5.o) $(PLUGINS_NCZ:%=$(BUILD)/plugins/obj/%.ncz.o)
-include $(PLUGIN_OBJ:.o=.d) $(PLUGINS:%=$(BUILD)/plugins/obj/%.h5.d) \
	$(PLUGINS_NCZ:%=$(BUILD)/plugins/obj/%.ncz.d)
# --- plugins of ours: end -----------------------------------------------------------------------

# --- bench: begin -------------------------------------------------------------------------------
# make bench [BENCH_MB=256] [BENCH_RUNS=5] [BENCH_ROWS='...']: ratios, not tests. The helpers
# are always built without sanitizers: they are the yardstick.
BENCH_TOOLS := build/bench/bare build/bench/reader build/bench/walk build/bench/codecs

build/bench/%: tests/bench/%.c Makefile
	@mkdir -p $(@D)
	@echo "  CC $@"
	$(Q)$(CC) -D_GNU_SOURCE -DFUSE_USE_VERSION=314 $(shell $(PKG_CONFIG) --cflags fuse3) \
		-std=c17 -O2 -g $(WARN) -o $@ $< $(shell $(PKG_CONFIG) --libs fuse3) -lpthread

build/bench/codecs: tests/bench/codecs.c $(filter build/obj/codecs/% build/obj/base/%,$(LIBOBJ)) Makefile
	@mkdir -p $(@D)
	@echo "  CC $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -o $@ $< $(filter %.o,$^) $(PKG_LIBS)

bench-tools: $(BENCH_TOOLS)

bench: $(BENCH_TOOLS) build/nczarrfs
	scripts/bench

.PHONY: bench bench-tools
# --- bench: end ---------------------------------------------------------------------------------

# ---- installing, checking, a first minute: scripts/ and tests/ ----
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
libdir ?= $(prefix)/lib
datadir ?= $(prefix)/share
mandir ?= $(datadir)/man
docdir ?= $(datadir)/doc/nczarrfs
unitdir ?= $(prefix)/lib/systemd/user
INSTALL_DIRS := DESTDIR prefix bindir sbindir libdir datadir mandir docdir unitdir zshdir PLUGINDIR

install-deps:
	scripts/install-deps build

install: all
install uninstall:
	@$(foreach v,$(INSTALL_DIRS),$(v)='$($(v))') CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' \
		scripts/install-files $@ $(BUILD)

# The Python package, into a directory on Python's path (docs/how-to/install.md).
PYTHONDIR ?= $(shell /usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
install-python:
	scripts/python/install '$(DESTDIR)$(PYTHONDIR)'

# A Debian package of what is here, into build/deb; deb-chroot SUITE=trixie: in a new Debian, where it
# is installed, tried and removed as well (docs/dev/packaging.md).
deb:
	VERSION='$(VERSION)' scripts/deb $(BUILD)/deb

SUITE ?= bookworm
deb-chroot:
	scripts/deb-chroot -s $(SUITE)

print-version:
	@echo $(VERSION)

# Packages first, in a make of its own: pkg-config must be asked after they are there. check-seeds is
# built with sanitizers in any case, so that check SANITIZE=1 need not repeat it.
check:
	scripts/install-deps check
	$(MAKE) -j2 WERROR=1 all
	$(MAKE) -j2 WERROR=1 tools
	$(MAKE) -j2 WERROR=1 unit
	scripts/check-includes
	scripts/check-length
	scripts/check-public
	scripts/check-banned $(BUILD)
	scripts/check-docs $(BUILD)/nczarrfs
	scripts/check-modules
	scripts/check-semantics
	$(if $(SANITIZE),,scripts/check-server $(BUILD))
	scripts/check-readme $(BUILD)/nczarrfs
	$(if $(SANITIZE),,$(MAKE) -j2 check-seeds)
	NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py $(TESTFLAGS)

# The same with all tests over many files, of which check has a sample: every file of the corpus,
# every feature in every form.
check-all:
	$(MAKE) check TESTFLAGS='--all $(TESTFLAGS)'

# Every program that writes, on every kind of store; faults at every call that writes, the death of a mount at 1000 random moments, a million operations
# on a writable file. Takes about an hour; make check has a sample of it.
check-writing:
	$(MAKE) -j2 WERROR=1 all tools
	NCZARRFS_WRITING_ALL=1 NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py -k rw_ $(TESTFLAGS)
	NCZARRFS_FAULTS=all NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py -k faults/ -k exercise/ \
		$(TESTFLAGS)

# Readers of Zarr v3, which this Debian may not have, in a Debian of their own: docs/reference/compatibility.md.
# make check runs a sample of their tests where they are, make check-peers all of them; where they
# cannot be had it says so.
peers:
	scripts/install-deps peers
	scripts/peers-chroot

check-peers:
	scripts/install-deps check
	$(MAKE) -j2 WERROR=1 all
	@scripts/install-deps peers || true
	@scripts/peers-chroot; case $$? in \
	0) NCZARRFS_PEERS_ALL=1 NCZARRFS=$(BUILD)/nczarrfs \
		tests/run-tests.py -k v3_peers $(TESTFLAGS) ;; \
	77) echo "check-peers: skipped" ;; \
	*) echo "check-peers: skipped: a Debian for them could not be made" ;; \
	esac

# The tests that Debian's packages of zarr-python, xarray and h5py install, stress-ng and fio on
# writable mounts, compared test by test with a directory of the disk: docs/dev/testing/README.md.
# SUITESFLAGS='-s xarray-zarr -m tree -k append': some of them.
check-suites:
	scripts/install-deps check
	scripts/install-deps suites
	$(MAKE) -j2 WERROR=1 all
	NCZARRFS=$(BUILD)/nczarrfs tests/suites/run.py $(SUITESFLAGS)

# Real services on this machine, which have to be installed (radosgw, Swift, nginx: 240 MB, as root
# and from the network): every dataset of the corpus from each of them. docs/dev/remote.md. What cannot
# be started is skipped, and said.
check-remote:
	scripts/install-deps check
	$(MAKE) -j2 WERROR=1 all tools
	@scripts/install-deps remote || echo "check-remote: packages are missing (no root, no network?)"
	NCZARRFS=$(BUILD)/nczarrfs scripts/remote-servers run tests/run-tests.py -k servers/ $(TESTFLAGS)
	$(MAKE) WERROR=1 $(BUILD)/unit/nczarr/http/test_leaks
	NCZARRFS_REQUESTS=100000 $(BUILD)/unit/nczarr/http/test_leaks
	NCZARRFS=$(BUILD)/nczarrfs NCZARRFS_REMOTE=all tests/run-tests.py -k remote_trees/ $(TESTFLAGS)

# The page of `nczarrfs serve` in a browser (chromium from Debian, playwright-core from npm); make check
# runs the same where they are.
PAGE_CLIENT := build/page/client
check-page: page
	@scripts/install-deps page || echo "check-page: packages are missing (no root, no network?)"
	@mkdir -p $(PAGE_CLIENT)
	@cp tests/clients/page/package.json tests/clients/page/package-lock.json $(PAGE_CLIENT)
	@cd $(PAGE_CLIENT) && timeout 120 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=0 \
		--fetch-timeout=20000 >log 2>&1 || echo "check-page: playwright-core cannot be had"
	NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py -k 'page/*' $(TESTFLAGS)

# Readers in JavaScript from npm: tables of chunks (nczarrfs refs --table) by hyparquet and DuckDB,
# classic files by netcdfjs; make check runs the same where they are.
NPM_CLIENTS := build/npm
check-npm:
	$(MAKE) -j2 WERROR=1 all
	@mkdir -p $(NPM_CLIENTS)
	@cp tests/clients/npm/package.json tests/clients/npm/package-lock.json $(NPM_CLIENTS)
	@cd $(NPM_CLIENTS) && timeout 300 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=0 \
		--fetch-timeout=60000 >log 2>&1 || echo "check-npm: the readers cannot be had"
	NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py -k refs_table -k netcdfjs $(TESTFLAGS)

demo:
	@scripts/install-deps demo
	@echo "building ..."
	@$(MAKE) --no-print-directory -s -j2 all
	@scripts/demo $(BUILD)/nczarrfs

.PHONY: install-deps install install-python uninstall deb deb-chroot print-version check check-all check-writing demo peers check-peers check-suites check-remote check-page check-npm
# ---- end of installing, checking, a first minute ----

# --- sanitizers: begin --------------------------------------------------------------------------
# make check-tsan   data races: unit tests, and a mount under parallel readers
# make check-asan   the unit tests and every end-to-end test with address and UB sanitizers
# make check-seeds  the kept inputs of every fuzz target, and a few damaged copies of each
# make check-fuzz   make check-mutated (below), and many damaged copies of all kept inputs
# make fuzz [TIME=60] [JOBS=] [FUZZ="lz4-32004 spec"] [UNTIL=7200]
#                   TIME seconds for each target (tests/fuzz/run.py lists them), by libFuzzer where
#                   clang has it; UNTIL: only those that had less CPU time in all runs
# make coverage     which lines tests run; fails when parsers have too few (scripts/coverage)
#
# Each of them first proves that its sanitizer sees what it is there for: tests/canary/.

# tests/unit/whole/*.c: source and view together
below_whole := $(MODULES)

check-tsan:
	tests/canary/run.py thread
	$(MAKE) -j2 SANITIZE=thread WERROR=1 all
	tests/canary/run.py watch $(MAKE) -j2 SANITIZE=thread WERROR=1 unit
	NCZARRFS=build-tsan/nczarrfs tests/run-tests.py -j1 -k stress -k canary/ $(TESTFLAGS)

check-asan:
	tests/canary/run.py address
	$(MAKE) -j2 SANITIZE=1 WERROR=1 all tools
	tests/canary/run.py watch $(MAKE) -j2 SANITIZE=1 WERROR=1 unit
	NCZARRFS=build-asan/nczarrfs tests/run-tests.py $(TESTFLAGS)

# A target has what it needs of everything (fuzz/all.a): what it defines itself takes the place of
# what is there. With SANITIZE=fuzz (clang) it is libFuzzer's, else tests/fuzz/replay.c runs it.
FUZZ_MAIN ?= tests/fuzz/replay.c
FUZZ_SRC := $(sort $(shell find tests/fuzz -name 'fuzz_*.c'))
FUZZ_TARGETS := $(patsubst %.c,fuzz/%,$(notdir $(FUZZ_SRC)))
vpath fuzz_%.c $(sort $(dir $(FUZZ_SRC)))

FUZZ_DAMAGE := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/fuzz/damage*.c))
$(BUILD)/fuzz/all.a: $(LIBOBJ) $(FUZZ_DAMAGE)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcsT $@ $^

$(BUILD)/fuzz/fuzz_%: fuzz_%.c $(wildcard tests/fuzz/*.h) $(FUZZ_MAIN) $(BUILD)/fuzz/all.a Makefile
	@echo "  FUZZ $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) $(FUZZ_LINK) -o $@ $< $(FUZZ_MAIN) \
		$(BUILD)/fuzz/all.a $(PKG_LIBS)

# a program with faults on purpose, and such a target
$(BUILD)/tests/canary: tests/tools/canary.c $(filter $(BUILD)/obj/base/%,$(LIBOBJ)) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) $(PKG_LIBS)

$(BUILD)/fuzz/fuzz_canary: tests/canary/fuzz_canary.c base/process/canary.h $(FUZZ_MAIN) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(FUZZ_LINK) -o $@ $< $(FUZZ_MAIN) -lpthread

fuzzers: $(FUZZ_TARGETS:%=$(BUILD)/%) $(BUILD)/fuzz/mutated $(BUILD)/tests/hdf4_make

# --- damaged datasets: begin
# make check-mutated [N=10000] [FORMATS="hdf5 zip"]: N damaged datasets of each format, mounted
# without the kernel and read through both views, with sanitizers; make check has fifty of each.
$(BUILD)/fuzz/mutated: tests/fuzz/mutated.c $(wildcard tests/fuzz/*.h) $(BUILD)/fuzz/all.a Makefile
	@echo "  FUZZ $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/fuzz/all.a $(PKG_LIBS)

N ?= 10000
check-mutated:
	$(MAKE) SANITIZE=1 WERROR=1 build-asan/fuzz/mutated build-asan/tests/hdf4_make build-asan/nczarrfs
	tests/fuzz/mutated.py -n $(N) $(FORMATS)

.PHONY: check-mutated
# --- damaged datasets: end

FUZZ_N ?= 2000
FUZZ_SEED ?= 1
check-seeds:
	tests/canary/run.py replay
	$(MAKE) SANITIZE=1 WERROR=1 OPT='-O1 -g1' fuzzers
	tests/fuzz/run.py -n 5 $(FUZZ)
	tests/fuzz/mutated.py --short -n 50

check-fuzz: check-mutated
	tests/canary/run.py replay
	$(MAKE) SANITIZE=1 WERROR=1 fuzzers
	tests/fuzz/run.py -n $(FUZZ_N) -s $(FUZZ_SEED) $(FUZZ)

TIME ?= 60
JOBS ?= $(shell nproc)
fuzz:
	@if tests/fuzz/run.py --libfuzzer; then \
		tests/canary/run.py libfuzzer && $(MAKE) -j$(JOBS) SANITIZE=fuzz fuzzers; else \
		tests/canary/run.py replay && $(MAKE) -j$(JOBS) SANITIZE=1 fuzzers; fi
	tests/fuzz/run.py -t $(TIME) -j $(JOBS) $(UNTIL:%=--until %) $(FUZZ)

coverage:
	$(MAKE) SANITIZE=coverage all tools fuzzers $(UNIT:$(BUILD)/%=build-cov/%) \
		$(TEST_PLUGINS:$(BUILD)/%=build-cov/%)
	scripts/coverage build-cov

.PHONY: check-tsan check-asan check-seeds check-fuzz fuzz fuzzers coverage
# --- sanitizers: end ----------------------------------------------------------------------------

# --- faults: begin ------------------------------------------------------------------------------
# make check-faults [FAULTS="-n 400"]: a fault at every call of every scene, in process
# (tests/faults/loops.c), and a few on mounts; make check has a sample. tests/faults/run.py.
FAULT_SRC := $(addprefix tests/faults/,inject.c inject_calls.c loops.c loops_left.c scene_open.c \
	scene_table.c scene_walk.c scene_write.c)
FAULT_WRAP := $(if $(filter build-asan,$(BUILD)),$(patsubst %,-Wl$(comma)--wrap=%,malloc calloc \
	realloc aligned_alloc strdup strndup))
# Addresses that addr2line understands; symbols that come before those of libraries.
$(BUILD)/tests/loops: $(FAULT_SRC) $(wildcard tests/faults/*.h) $(LIBOBJ) \
		fusefs/main.c Makefile
	@mkdir -p $(@D)
	@echo "  TOOL $@"
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LDFLAGS) -fno-pie -no-pie -rdynamic \
		$(FAULT_WRAP) -o $@ $(FAULT_SRC) $(LIBOBJ) $(PKG_LIBS)

INJECT := $(BUILD)/tests/libinject.so
$(INJECT): tests/faults/inject.c tests/faults/inject_calls.c $(wildcard tests/faults/*.h) Makefile
	@mkdir -p $(@D)
	@echo "  TOOL $@"
	$(Q)$(CC) $(CPPFLAGS) -std=c17 $(OPT) $(WARN) -fvisibility=hidden -fPIC -shared -o $@ \
		$(filter %.c,$^)

tools: $(BUILD)/tests/loops $(INJECT)

check-faults:
	$(MAKE) -j2 WERROR=1 all tools
	tests/faults/run.py $(BUILD) $(FAULTS)
	NCZARRFS_LOOPS=all NCZARRFS=$(BUILD)/nczarrfs tests/run-tests.py -k fault_loops/ $(TESTFLAGS)

.PHONY: check-faults
# --- faults: end --------------------------------------------------------------------------------

# --- long runs: begin ---------------------------------------------------------------------------
# make soak TIME=7200 [SEED=1] [PACE=0] [SOAK='--only mirror,lean']: docs/dev/testing/reliability.md. PACE: operations a
# second; 0: as many as there can be.
SEED ?= 1
PACE ?= 0
soak:
	scripts/install-deps check
	$(MAKE) -j2 WERROR=1 all
	NCZARRFS=$(BUILD)/nczarrfs tests/soak/run.py --time $(TIME) --seed $(SEED) --pace $(PACE) $(SOAK)

.PHONY: soak
# --- long runs: end -----------------------------------------------------------------------------
