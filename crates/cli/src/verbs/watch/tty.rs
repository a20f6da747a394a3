//! The terminal while quell draws on it: taken over at the start, and restored however the run ends.

use std::io::{self, Stdout};
use std::time::Duration;

use quell_analysis::live::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::{cursor, execute, terminal};

use super::display_state::Board;
use super::screen::{self, Palette};
use super::view::{Then, View};

/// The terminal in full-screen mode, and its content.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    view: View,
    palette: Palette,
    board: Board,
    /// The content while the display is paused.
    held: Option<Board>,
    _given_back: GivenBack,
}

impl std::fmt::Debug for Tty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tty").field("view", &self.view).finish_non_exhaustive()
    }
}

impl Tty {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn take(view: View, title: String) -> io::Result<Self> {
        give_back_on_panic();
        let given_back = GivenBack;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let board = Board { title, ..Board::default() };
        let palette = Palette::from_environment();
        let mut tty = Self { terminal, view, palette, board, held: None, _given_back: given_back };
        tty.draw()?;
        Ok(tty)
    }

    /// Shows a new frame; while paused, stores it until the pause ends.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn show(&mut self, frame: Frame) -> io::Result<()> {
        self.board.take(frame);
        if self.held.is_none() { self.draw() } else { Ok(()) }
    }

    /// Handles the keys since the last call; returns whether one of them ends the run.
    ///
    /// # Errors
    /// Errors of the terminal.
    pub fn keys(&mut self) -> io::Result<bool> {
        let mut changed = false;
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) => match self.view.key(key) {
                    Then::Quit => return Ok(true),
                    Then::Draw => changed = true,
                    Then::Stay => {}
                },
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        if self.view.paused != self.held.is_some() {
            self.held = self.view.paused.then(|| self.board.clone());
        }
        if changed { self.draw().map(|()| false) } else { Ok(false) }
    }

    /// Sleeps until a key is pressed, but at most for `length`; returns whether waiting on the terminal is possible.
    pub fn sleep_for(&self, length: Duration) -> bool {
        event::poll(length).is_ok()
    }

    fn draw(&mut self) -> io::Result<()> {
        let board = self.held.as_ref().unwrap_or(&self.board);
        let (view, palette) = (&mut self.view, self.palette);
        self.terminal.draw(|area| screen::draw(area, board, view, palette))?;
        Ok(())
    }
}

/// Restores the terminal when dropped.
struct GivenBack;

impl Drop for GivenBack {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // If even this fails, there is no one to report it to.
    let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// Restores the terminal first, so that the message of a panic is on the normal screen.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
}
