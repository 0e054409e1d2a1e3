//! An embassy-net driver for the SMSC LAN9118 network chip, as far as this board needs it.
//!
//! The chip has two frame FIFOs behind two registers. Frames are read when embassy-net consumes a
//! receive token and written when it consumes a transmit token; the two frame buffers are statics
//! of the caller, because a driver value is moved and 3 KiB moved is 3 KiB of stack.
//!
//! The interrupt is level-triggered: the handler masks it and wakes the stack; [`Lan9118::receive`]
//! lets it through again once the FIFO is empty, and then looks a last time, so that no frame falls
//! between. Register names and bits follow the LAN9118 data sheet.

use core::sync::atomic::Ordering;
use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use portable_atomic::AtomicUsize;

use super::interrupts;
use super::mmio::Mmio;

/// Register window of the chip on `mps2-an386` and `mps2-an385`.
pub const BASE_AN386: usize = 0x4020_0000;
/// Register window of the chip on `mps2-an500`.
pub const BASE_AN500: usize = 0xA000_0000;

/// Longest frame without its check sequence.
const FRAME_BYTES_MAX: usize = 1514;
/// Frame check sequence, counted by the chip in received lengths.
const FCS_BYTES: usize = 4;
/// A buffer for one frame, in whole words, since the FIFOs hand out nothing else.
pub type FrameBuffer = [u8; 1520];

static WAKER: AtomicWaker = AtomicWaker::new();
/// Where the interrupt handler finds the chip; zero before [`Lan9118::new`].
static CHIP_BASE: AtomicUsize = AtomicUsize::new(0);

/// Offsets of the chip's registers in its window.
mod register {
    pub const RX_DATA: usize = 0x00;
    pub const TX_DATA: usize = 0x20;
    pub const RX_STATUS: usize = 0x40;
    pub const RX_STATUS_PEEK: usize = 0x44;
    pub const TX_STATUS: usize = 0x48;
    pub const IRQ_CFG: usize = 0x54;
    pub const INT_STS: usize = 0x58;
    pub const INT_EN: usize = 0x5C;
    pub const BYTE_TEST: usize = 0x64;
    pub const FIFO_INT: usize = 0x68;
    pub const RX_CFG: usize = 0x6C;
    pub const TX_CFG: usize = 0x70;
    pub const HW_CFG: usize = 0x74;
    pub const RX_DP_CTRL: usize = 0x78;
    pub const RX_FIFO_INF: usize = 0x7C;
    pub const TX_FIFO_INF: usize = 0x80;
    pub const PMT_CTRL: usize = 0x84;
    pub const MAC_CSR_CMD: usize = 0xA4;
    pub const MAC_CSR_DATA: usize = 0xA8;
}

const BYTE_TEST_VALUE: u32 = 0x8765_4321;
const HW_CFG_SOFT_RESET: u32 = 1 << 0;
/// 5 KiB of the FIFO memory to the transmitter, and the bit that must be one.
const HW_CFG_RUN: u32 = 5 << 16 | 1 << 20;
const PMT_CTRL_READY: u32 = 1 << 0;
/// Enabled, active high, push-pull: the level the interrupt controller expects.
const IRQ_CFG_RUN: u32 = 1 << 8 | 1 << 4 | 1 << 0;
const INT_RX_STATUS_LEVEL: u32 = 1 << 3;
const INT_PHY: u32 = 1 << 18;
const TX_CFG_ON: u32 = 1 << 1;
const RX_DP_FAST_FORWARD: u32 = 1 << 31;
const RX_STATUS_ERROR: u32 = 1 << 15;
const TX_FIRST_AND_LAST_SEGMENT: u32 = 1 << 13 | 1 << 12;
const CSR_BUSY: u32 = 1 << 31;
const CSR_READ: u32 = 1 << 30;

const MAC_CR: u32 = 1;
const MAC_ADDRESS_HIGH: u32 = 2;
const MAC_ADDRESS_LOW: u32 = 3;
const MII_ACCESS: u32 = 6;
const MII_DATA: u32 = 7;
/// Full duplex, transmitter and receiver on.
const MAC_CR_RUN: u32 = 1 << 20 | 1 << 3 | 1 << 2;
const MII_BUSY: u32 = 1 << 0;
const MII_WRITE: u32 = 1 << 1;
const MII_PHY_ADDRESS: u32 = 1 << 11;

const PHY_CONTROL: u32 = 0;
const PHY_STATUS: u32 = 1;
const PHY_INTERRUPT_SOURCE: u32 = 29;
const PHY_INTERRUPT_MASK: u32 = 30;
const PHY_RESET: u32 = 1 << 15;
/// Negotiate, beginning now.
const PHY_NEGOTIATE: u32 = 1 << 12 | 1 << 9;
const PHY_LINK_UP: u32 = 1 << 2;
/// Negotiation complete and link down.
const PHY_INTERRUPTS: u32 = 1 << 6 | 1 << 4;

/// How often a bit that the chip clears by itself is read before the chip is given up.
const POLLS_MAX: u32 = 100_000;

/// Why the chip could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The byte-order register did not answer: another chip, or none.
    NotFound,
    /// A reset or a register access did not end.
    Stuck,
}

/// The chip, started.
#[derive(Debug)]
pub struct Lan9118 {
    chip: Chip,
    rx_frame: &'static mut FrameBuffer,
    tx_frame: &'static mut FrameBuffer,
    address: [u8; 6],
    link_up: bool,
}

impl Lan9118 {
    /// Resets the chip at `base` and starts it, with interrupts on.
    ///
    /// # Safety
    ///
    /// `base` must be the address of a LAN9118's register window that nothing else uses.
    pub unsafe fn new(
        base: usize,
        rx_frame: &'static mut FrameBuffer,
        tx_frame: &'static mut FrameBuffer,
    ) -> Result<Self, StartError> {
        // SAFETY: promised by the caller; the chip has no DMA, so no access touches memory.
        let window = unsafe { Mmio::new(base, 0x100) };
        let chip = Chip { window };
        chip.reset()?;
        let address = chip.mac_address()?;
        chip.start_phy()?;
        chip.start()?;
        CHIP_BASE.store(base, Ordering::Release);
        interrupts::enable_ethernet();
        let link_up = chip.is_link_up();
        Ok(Self {
            chip,
            rx_frame,
            tx_frame,
            address,
            link_up,
        })
    }
}

/// Masks the chip's interrupt and wakes the network stack, which lets it through again.
pub fn handle_interrupt() {
    let base = CHIP_BASE.load(Ordering::Acquire);
    if base != 0 {
        // SAFETY: the base was given to `Lan9118::new` under its promise.
        let window = unsafe { Mmio::new(base, 0x100) };
        window.write(register::INT_EN, 0);
    }
    WAKER.wake();
}

impl Driver for Lan9118 {
    type RxToken<'a> = ReceivedFrame<'a>;
    type TxToken<'a> = FrameToSend<'a>;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(ReceivedFrame<'_>, FrameToSend<'_>)> {
        let mut status = self.chip.next_good_frame();
        if status.is_none() {
            WAKER.register(cx.waker());
            self.chip.rearm_interrupt();
            status = self.chip.next_good_frame();
        }
        let len = status?;
        Some((
            ReceivedFrame {
                chip: self.chip,
                frame: self.rx_frame,
                len,
            },
            FrameToSend {
                chip: self.chip,
                frame: self.tx_frame,
            },
        ))
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<FrameToSend<'_>> {
        WAKER.register(cx.waker());
        self.chip.has_room().then_some(FrameToSend {
            chip: self.chip,
            frame: self.tx_frame,
        })
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        WAKER.register(cx.waker());
        if self.chip.phy_changed() {
            self.link_up = self.chip.is_link_up();
        }
        if self.link_up {
            LinkState::Up
        } else {
            LinkState::Down
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        // The receive FIFO holds about 10 KiB and drops silently beyond. Six frames keep the
        // advertised window inside it; one frame would stall windows of more than one segment.
        capabilities.max_burst_size = Some(6);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}

/// A frame that waits in the chip.
#[derive(Debug)]
pub struct ReceivedFrame<'a> {
    chip: Chip,
    frame: &'a mut FrameBuffer,
    len: usize,
}

impl RxToken for ReceivedFrame<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        self.chip.read_frame(self.frame, self.len);
        read(&mut self.frame[..self.len])
    }
}

/// Room for one frame in the chip.
#[derive(Debug)]
pub struct FrameToSend<'a> {
    chip: Chip,
    frame: &'a mut FrameBuffer,
}

impl TxToken for FrameToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        // The stack keeps to `max_transmission_unit`, which is below the buffer's size.
        let result = write(&mut self.frame[..len]);
        self.chip.write_frame(self.frame, len);
        result
    }
}

/// The register window with the chip's procedures.
#[derive(Clone, Copy, Debug)]
struct Chip {
    window: Mmio,
}

impl Chip {
    fn reset(self) -> Result<(), StartError> {
        self.window.write(register::BYTE_TEST, 0);
        if self.window.read(register::BYTE_TEST) != BYTE_TEST_VALUE {
            return Err(StartError::NotFound);
        }
        self.window.write(register::HW_CFG, HW_CFG_SOFT_RESET);
        self.poll_register(register::HW_CFG, HW_CFG_SOFT_RESET, 0)?;
        self.poll_register(register::PMT_CTRL, PMT_CTRL_READY, PMT_CTRL_READY)?;
        self.window.write(register::HW_CFG, HW_CFG_RUN);
        Ok(())
    }

    fn start_phy(self) -> Result<(), StartError> {
        self.write_phy(PHY_CONTROL, PHY_RESET)?;
        poll(|| {
            self.read_phy(PHY_CONTROL)
                .map(|control| control & PHY_RESET == 0)
        })?;
        self.write_phy(PHY_INTERRUPT_MASK, PHY_INTERRUPTS)?;
        self.write_phy(PHY_CONTROL, PHY_NEGOTIATE)
    }

    fn start(self) -> Result<(), StartError> {
        self.window.write(register::INT_EN, 0);
        self.window.write(register::INT_STS, u32::MAX);
        // Level zero: one waiting frame is enough for an interrupt.
        self.window.write(register::FIFO_INT, 0);
        self.window.write(register::RX_CFG, 0);
        self.write_mac(MAC_CR, MAC_CR_RUN)?;
        self.window.write(register::TX_CFG, TX_CFG_ON);
        self.window.write(register::IRQ_CFG, IRQ_CFG_RUN);
        self.rearm_interrupt();
        Ok(())
    }

    /// The address that the chip loaded from its EEPROM, or QEMU from `-nic mac=`.
    fn mac_address(self) -> Result<[u8; 6], StartError> {
        let [a, b, c, d] = self.read_mac(MAC_ADDRESS_LOW)?.to_le_bytes();
        let [e, f, ..] = self.read_mac(MAC_ADDRESS_HIGH)?.to_le_bytes();
        Ok([a, b, c, d, e, f])
    }

    fn rearm_interrupt(self) {
        self.window.write(register::INT_STS, INT_RX_STATUS_LEVEL);
        self.window
            .write(register::INT_EN, INT_RX_STATUS_LEVEL | INT_PHY);
    }

    /// Acknowledges a change that the PHY reported. The chip repeats it until the PHY's own
    /// register was read.
    fn phy_changed(self) -> bool {
        let changed = self.window.read(register::INT_STS) & INT_PHY != 0;
        if changed {
            // A PHY that does not answer leaves the interrupt pending, and the next look retries.
            let _ = self.read_phy(PHY_INTERRUPT_SOURCE);
            self.window.write(register::INT_STS, INT_PHY);
        }
        changed
    }

    /// The link bit remembers a loss until it is read, so the second reading is the present.
    fn is_link_up(self) -> bool {
        let _ = self.read_phy(PHY_STATUS);
        self.read_phy(PHY_STATUS)
            .is_ok_and(|status| status & PHY_LINK_UP != 0)
    }

    /// Length without check sequence of the next frame that is worth reading; others are dropped.
    fn next_good_frame(self) -> Option<usize> {
        loop {
            let waiting = self.window.read(register::RX_FIFO_INF) >> 16 & 0xFF;
            if waiting == 0 {
                return None;
            }
            let status = self.window.read(register::RX_STATUS_PEEK);
            let len = (status >> 16 & 0x3FFF) as usize;
            let good = status & RX_STATUS_ERROR == 0;
            if good && (FCS_BYTES + 1..=FRAME_BYTES_MAX + FCS_BYTES).contains(&len) {
                return Some(len - FCS_BYTES);
            }
            self.discard_frame(len);
        }
    }

    /// Fast-forward moves whole frames but wants at least four words; shorter ones are read.
    fn discard_frame(self, len: usize) {
        let words = len.div_ceil(4);
        self.window.read(register::RX_STATUS);
        if words >= 4 {
            self.window.write(register::RX_DP_CTRL, RX_DP_FAST_FORWARD);
            let _ = self.poll_register(register::RX_DP_CTRL, RX_DP_FAST_FORWARD, 0);
        } else {
            for _ in 0..words {
                self.window.read(register::RX_DATA);
            }
        }
    }

    fn read_frame(self, frame: &mut FrameBuffer, len: usize) {
        self.window.read(register::RX_STATUS);
        let words = (len + FCS_BYTES).div_ceil(4);
        let mut chunks = frame.chunks_exact_mut(4);
        for _ in 0..words {
            let word = self.window.read(register::RX_DATA).to_le_bytes();
            if let Some(chunk) = chunks.next() {
                chunk.copy_from_slice(&word);
            }
        }
    }

    /// Room for the longest frame and its two command words.
    fn has_room(self) -> bool {
        while self.window.read(register::TX_FIFO_INF) >> 16 & 0xFF != 0 {
            self.window.read(register::TX_STATUS);
        }
        let free = (self.window.read(register::TX_FIFO_INF) & 0xFFFF) as usize;
        free >= FRAME_BYTES_MAX.next_multiple_of(4) + 8
    }

    fn write_frame(self, frame: &FrameBuffer, len: usize) {
        let len_field = len as u32;
        self.window
            .write(register::TX_DATA, TX_FIRST_AND_LAST_SEGMENT | len_field);
        self.window.write(register::TX_DATA, len_field);
        for word in frame.as_chunks::<4>().0.iter().take(len.div_ceil(4)) {
            self.window
                .write(register::TX_DATA, u32::from_le_bytes(*word));
        }
    }

    fn read_mac(self, index: u32) -> Result<u32, StartError> {
        self.window
            .write(register::MAC_CSR_CMD, CSR_BUSY | CSR_READ | index);
        self.poll_register(register::MAC_CSR_CMD, CSR_BUSY, 0)?;
        Ok(self.window.read(register::MAC_CSR_DATA))
    }

    fn write_mac(self, index: u32, value: u32) -> Result<(), StartError> {
        self.window.write(register::MAC_CSR_DATA, value);
        self.window.write(register::MAC_CSR_CMD, CSR_BUSY | index);
        self.poll_register(register::MAC_CSR_CMD, CSR_BUSY, 0)
    }

    fn read_phy(self, index: u32) -> Result<u32, StartError> {
        self.write_mac(MII_ACCESS, MII_PHY_ADDRESS | index << 6 | MII_BUSY)?;
        self.poll_mii()?;
        self.read_mac(MII_DATA)
    }

    fn write_phy(self, index: u32, value: u32) -> Result<(), StartError> {
        self.write_mac(MII_DATA, value)?;
        self.write_mac(
            MII_ACCESS,
            MII_PHY_ADDRESS | index << 6 | MII_WRITE | MII_BUSY,
        )?;
        self.poll_mii()
    }

    fn poll_mii(self) -> Result<(), StartError> {
        poll(|| {
            self.read_mac(MII_ACCESS)
                .map(|access| access & MII_BUSY == 0)
        })
    }

    fn poll_register(self, offset: usize, mask: u32, wanted: u32) -> Result<(), StartError> {
        poll(|| Ok(self.window.read(offset) & mask == wanted))
    }
}

fn poll(mut ready: impl FnMut() -> Result<bool, StartError>) -> Result<(), StartError> {
    for _ in 0..POLLS_MAX {
        if ready()? {
            return Ok(());
        }
    }
    Err(StartError::Stuck)
}
